#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/input_file.h"
#include "sim/trace/impl/file_problems.h"

namespace hdpsim {

/// The records of a CSV file (RFC 4180: commas, double quotes, line ends inside quotes). In place of commas there may
/// be tabs, semicolons, bars or blanks, of which the first line has the first that it has. Empty lines, lines that
/// begin with # and blanks around unquoted values are skipped. The first record names the columns; a record of another
/// width is reported to `problems` and skipped, and one above most_columns (limits.h) is fatal.
class CsvRecords {
 public:
  /// Reads the header. A file without one is fatal (InputError).
  CsvRecords(const std::filesystem::path& path, FileProblems& problems);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// The place of the header.
  [[nodiscard]] TextPlace header() const { return {header_text_, header_line_, 1}; }
  [[nodiscard]] bool has(std::string_view column) const;
  /// The index of a column, which must exist (checked).
  [[nodiscard]] std::size_t index_of(std::string_view column) const;

  /// Reads the next record; false at the end of the file.
  bool next();
  [[nodiscard]] const std::string& value(std::size_t column) const { return fields_[column].text; }
  [[nodiscard]] TextPlace place(std::size_t column) const;

 private:
  struct Field {
    std::string text;
    int line = 0;  // within lines_, from 0
    int column = 1;
  };
  bool read_record();
  std::size_t read_quoted(Field& field, std::size_t open);
  std::size_t read_plain(Field& field, std::size_t begin);
  Field& new_field(std::size_t at);
  [[nodiscard]] std::string_view around() const { return separator_ == '\t' ? " " : blanks; }
  [[nodiscard]] std::size_t behind(std::size_t separator) const;
  [[nodiscard]] const std::string& line() const { return lines_[line_count_ - 1]; }
  void take_line();

  LineReader reader_;
  FileProblems& problems_;
  char separator_;
  std::vector<std::string> columns_;
  std::string header_text_;
  int header_line_ = 0;
  std::vector<Field> fields_;  // the first field_count_ are the record's; the others keep their memory
  std::size_t field_count_ = 0;
  std::vector<std::string> lines_;  // the lines that the record spans, the first line_count_
  std::size_t line_count_ = 0;
  int first_line_ = 0;
  std::size_t quoted_ = 0;  // bytes of the record's lines after the first
};

}  // namespace hdpsim
