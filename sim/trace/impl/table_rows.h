#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "sim/document/limits.h"
#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/file_problems.h"

namespace hdpsim {

/// A CSV whose rows are all needed, with its problems.
class TableRows {
 public:
  explicit TableRows(const std::filesystem::path& path) : problems_(path.string()), records_(path, problems_) {}

  /// Reads the next row; false at the end of the file. A table of more than most_table_rows is fatal.
  bool next() {
    if (!records_.next()) return false;
    if (++read_ > most_table_rows) {
      problems_.fail(records_.place(0), fmt::format("more than {} rows describe a distribution", most_table_rows));
    }
    return true;
  }

  [[nodiscard]] const std::string& name(std::size_t column) const { return records_.columns()[column]; }
  [[nodiscard]] const std::string& text(std::size_t column) const { return records_.value(column); }

  template <class T>
  T value(std::size_t column, Parsed<T> (*parse)(std::string_view), T otherwise) {
    const Parsed<T> parsed = parse(records_.value(column));
    if (!parsed.value) add(column, parsed.error, parsed.help);
    return parsed.value.value_or(otherwise);
  }

  void add(std::size_t column, std::string message, std::string help = {}) {
    problems_.add(records_.place(column), std::move(message), std::move(help));
  }
  /// A problem of the table as a whole, which counts where its rows have none.
  void add_unless_wrong(std::string message, std::string help = {}) {
    if (problems_.empty()) problems_.add(std::move(message), std::move(help));
  }

  /// Checks the table after its last row.
  void finish(bool empty) {
    if (empty) add_unless_wrong("the file holds no rows under its header");
    problems_.throw_if_any();
  }

 private:
  FileProblems problems_;
  CsvRecords records_;
  std::int64_t read_ = 0;
};

}  // namespace hdpsim
