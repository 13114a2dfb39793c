#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/validate/published_figure.h"

namespace hdpsim {

/// One column of a set: a figure, the case's name, or something of the study.
struct Column {
  std::string name;  ///< As written, but for what frameworks call some: `vpp` is virtual_stages.
  Position position;
  std::optional<Quantity> figure;
  std::string plan;      ///< Of a figure.
  std::string path;      ///< Where a study has the value of a cell; empty: nowhere as it is.
  bool of_plan = false;  ///< It says how the job is spread and not what the job is.
};

/// The column that a title names; a title that names none is reported.
[[nodiscard]] Column column_of(const Value& title, Diagnostics& diagnostics);

/// The columns of jobs of sequences of one length: those that say what the job is, and how it is spread.
[[nodiscard]] std::vector<std::string_view> job_column_names();
[[nodiscard]] std::vector<std::string_view> plan_column_names();

/// The columns of a set.
struct SetTable {
  std::vector<Column> columns;
  bool is_known = true;                     ///< Every title names one.
  std::set<std::string> constant;           ///< Names of those whose cells are the same in all of several rows.
  std::vector<PublishedFigure> to_measure;  ///< The figures of a case that could be measured; empty: cells have them.
};

/// Reports rows that have not one cell a column: once, at the columns, where all of several rows have the same other
/// number, for then the columns are wrong. `what` is a row's name. False if there is any.
bool have_all_cells(const Value& columns, const std::vector<Value>& rows, std::string_view what,
                    Diagnostics& diagnostics);

}  // namespace hdpsim
