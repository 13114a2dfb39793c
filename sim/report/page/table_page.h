#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/results/table.h"

namespace hdpsim {

/// A table for a terminal and for a page: the first and the last cell of a row are texts, the others numbers.
struct ShownTable {
  struct Group {
    std::string name;  ///< What the rows have in common; may be empty.
    std::vector<TextRow> rows;
  };
  std::string title;
  TextRow titles;
  std::vector<Group> groups;
};
/// The table as lines, with an empty one between groups. At least one group has a row.
[[nodiscard]] std::string table_text(const ShownTable& table);

/// Curves of plans, both axes of which have powers of ten as equal steps.
struct ShownCurves {
  std::string title;
  std::string about;
  std::string x;
  std::string y;
  double limit = 0;  ///< A value of y that is marked, ...
  std::string limit_text;
  std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>> series{};  ///< By plan, x ascending.
};

/// A page of its own, with what it says first, notes, and tables.
struct TablePage {
  std::string title;
  std::string lead;
  std::vector<std::string> notes;
  std::vector<std::string> plans;  ///< All that are named.
  std::optional<ShownCurves> curves{};
  std::vector<ShownTable> tables;
};
[[nodiscard]] std::string table_page(const TablePage& page);

}  // namespace hdpsim
