#include "sim/trace/impl/csv_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/document/input_file.h"
#include "sim/document/limits.h"

namespace hdpsim {
namespace {

// Bytes of a record after its first line. An unclosed quote would otherwise take the rest of the file for one value.
constexpr std::size_t longest_quoted = std::size_t{1} << 20;

}  // namespace

CsvRecords::CsvRecords(const std::filesystem::path& path, FileProblems& problems) : reader_(path), problems_(problems) {
  if (!read_record()) problems_.fail("the file is empty", "the first line names the columns");
  for (std::size_t i = 0; i < field_count_; ++i) columns_.push_back(fields_[i].text);
  header_text_ = lines_.front();
  header_line_ = first_line_;
}

bool CsvRecords::has(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

std::size_t CsvRecords::index_of(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  HDPSIM_CHECK(found != columns_.end(), "no column {}", column);
  return static_cast<std::size_t>(found - columns_.begin());
}

bool CsvRecords::next() {
  while (read_record()) {
    if (field_count_ == columns_.size()) return true;
    const int end = static_cast<int>(line().size()) + 1;
    problems_.add({line(), first_line_ + static_cast<int>(line_count_) - 1, end},
                  fmt::format("the row has {} value{}, the header {}", field_count_, field_count_ == 1 ? "" : "s",
                              columns_.size()),
                  field_count_ > columns_.size() ? "put a value with a comma in it in double quotes" : "");
  }
  return false;
}

TextPlace CsvRecords::place(std::size_t column) const {
  const Field& field = fields_[column];
  return {lines_[static_cast<std::size_t>(field.line)], first_line_ + field.line, field.column};
}

bool CsvRecords::read_record() {
  if (!reader_.next_filled('#')) return false;
  line_count_ = 0;
  field_count_ = 0;
  quoted_ = 0;
  first_line_ = reader_.number();
  take_line();
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t first = line().find_first_not_of(blanks, at);
    Field& field = new_field(first == std::string::npos ? at : first);
    at = first != std::string::npos && line()[first] == '"' ? read_quoted(field, first) : read_plain(field, at);
  }
  return true;
}

// Both return where the next field begins, npos after the last one.
std::size_t CsvRecords::read_plain(Field& field, std::size_t begin) {
  const std::size_t comma = line().find(',', begin);
  std::string_view text = std::string_view(line()).substr(begin, comma == std::string::npos ? comma : comma - begin);
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    field.text.clear();
  } else {
    field.text.assign(text.substr(first, text.find_last_not_of(blanks) + 1 - first));
  }
  return comma == std::string::npos ? comma : comma + 1;
}

std::size_t CsvRecords::read_quoted(Field& field, std::size_t open) {
  field.text.clear();
  std::size_t at = open + 1;
  while (true) {
    const std::size_t quote = line().find('"', at);
    field.text.append(line(), at, quote == std::string::npos ? quote : quote - at);
    if (quote == std::string::npos) {
      if (quoted_ > longest_quoted || !reader_.next()) {
        problems_.fail({lines_[static_cast<std::size_t>(field.line)], first_line_ + field.line, field.column},
                       "the quote is never closed", "a quote inside a quoted value is written twice");
      }
      take_line();
      quoted_ += line().size() + 1;
      field.text += '\n';
      at = 0;
    } else if (quote + 1 < line().size() && line()[quote + 1] == '"') {
      field.text += '"';
      at = quote + 2;
    } else {
      at = line().find_first_not_of(blanks, quote + 1);
      break;
    }
  }
  if (at == std::string::npos) return at;
  if (line()[at] == ',') return at + 1;
  problems_.add({line(), first_line_ + static_cast<int>(line_count_) - 1, static_cast<int>(at) + 1},
                "there is text after the closing quote", "a quote inside a quoted value is written twice");
  const std::size_t comma = line().find(',', at);
  return comma == std::string::npos ? comma : comma + 1;
}

CsvRecords::Field& CsvRecords::new_field(std::size_t at) {
  if (field_count_ == most_columns) {
    problems_.fail({line(), first_line_ + static_cast<int>(line_count_) - 1, static_cast<int>(at) + 1},
                   fmt::format("more than {} values in a row", most_columns), "is it the right file?");
  }
  if (field_count_ == fields_.size()) fields_.emplace_back();
  Field& field = fields_[field_count_++];
  field.line = static_cast<int>(line_count_) - 1;
  field.column = static_cast<int>(at) + 1;
  return field;
}

void CsvRecords::take_line() {
  if (line_count_ == lines_.size()) lines_.emplace_back();
  lines_[line_count_++].assign(reader_.text());
}

}  // namespace hdpsim
