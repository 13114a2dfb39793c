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

std::string without_quoted(std::string_view line) {
  std::string rest;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c != '"') rest += c;
  }
  return rest;
}

std::size_t words_in(std::string_view line) {
  std::size_t words = 0;
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos; ++words) {
    at = line.find_first_not_of(blanks, std::min(line.size(), line.find_first_of(blanks, at)));
  }
  return words;
}

// What separates the fields of a file, by its first line. A name may have blanks in it: they separate where the line
// behind has as many words, and more than one.
char separator_of(const std::filesystem::path& path) {
  LineReader lines(path);
  if (!lines.next_filled('#')) return ',';
  const std::string header = without_quoted(lines.text());
  for (const char separator : {',', '\t', ';', '|'}) {
    if (header.find(separator) != std::string::npos) return separator;
  }
  const std::size_t words = words_in(header);
  if (words < 2 || header.size() != lines.text().size() || !lines.next_filled('#')) return ',';
  return words_in(lines.text()) == words ? ' ' : ',';
}

}  // namespace

CsvRecords::CsvRecords(const std::filesystem::path& path, FileProblems& problems)
    : reader_(path), problems_(problems), separator_(separator_of(path)) {
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
    const std::size_t first = line().find_first_not_of(around(), at);
    Field& field = new_field(first == std::string::npos ? at : first);
    const bool is_quoted = first != std::string::npos && line()[first] == '"';
    at = is_quoted ? read_quoted(field, first) : read_plain(field, separator_ == ' ' ? first : at);
  }
  return true;
}

// Where the field behind a separator begins, npos if there is none. Blanks may be many.
std::size_t CsvRecords::behind(std::size_t separator) const {
  if (separator == std::string::npos) return separator;
  return separator_ == ' ' ? line().find_first_not_of(blanks, separator) : separator + 1;
}

// Both return where the next field begins, npos after the last one.
std::size_t CsvRecords::read_plain(Field& field, std::size_t begin) {
  const std::size_t end = separator_ == ' ' ? line().find_first_of(blanks, begin) : line().find(separator_, begin);
  const std::string_view text = std::string_view(line()).substr(begin, end == std::string::npos ? end : end - begin);
  field.text.assign(without_blanks(text));
  return behind(end);
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
      at = separator_ == ' ' ? quote + 1 : line().find_first_not_of(around(), quote + 1);
      break;
    }
  }
  if (at >= line().size()) return std::string::npos;
  if (line()[at] == separator_ || (separator_ == ' ' && line()[at] == '\t')) return behind(at);
  problems_.add({line(), first_line_ + static_cast<int>(line_count_) - 1, static_cast<int>(at) + 1},
                "there is text after the closing quote", "a quote inside a quoted value is written twice");
  return behind(line().find(separator_, at));
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
