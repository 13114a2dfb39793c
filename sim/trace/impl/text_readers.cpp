#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/text.h"
#include "sim/document/input_file.h"
#include "sim/document/json.h"
#include "sim/document/limits.h"
#include "sim/trace/impl/columns.h"
#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/readers.h"
#include "sim/trace/impl/table_layout.h"

namespace hdpsim {
namespace {

class LinesSource : public FileSource {
 public:
  explicit LinesSource(const std::filesystem::path& path) : FileSource(path.string()), lines_(path) {}

 private:
  std::optional<Length> read() override {
    while (lines_.next_filled('#')) {
      const std::string_view line = lines_.text();
      const Parsed<std::int64_t> length = parse_length(without_blanks(line));
      if (length.value) return Length{*length.value, {}};
      const auto column = static_cast<int>(line.find_first_not_of(blanks)) + 1;
      problems().add({line, lines_.number(), column}, length.error, length.help);
    }
    return std::nullopt;
  }

  LineReader lines_;
};

/// A file whose rows have named values: one or several that add up to the length, and perhaps the step.
class ColumnSource : public FileSource {
 public:
  using FileSource::FileSource;
  [[nodiscard]] std::string column() const final { return columns_.found_names(); }

 protected:
  /// The length of the current row; empty if a problem was added.
  std::optional<Length> length_of_row() {
    const bool is_sum = columns_.lengths.size() > 1;
    Length length;
    bool good = true;
    for (const std::string& name : columns_.lengths) {
      std::int64_t part = 0;
      good = take(name, is_sum ? parse_part_of_length : parse_length, part) && good;
      length.tokens += part;
    }
    if (good && is_sum) good = is_good(checked_length(length.tokens), columns_.lengths.front());
    if (!columns_.step.empty()) good = take(columns_.step, parse_step, length.step.emplace()) && good;
    return good ? std::optional(length) : std::nullopt;
  }
  LengthColumns columns_;

 private:
  /// The value of a column in the current row as text; empty if a problem was added.
  virtual std::optional<std::string> text_of(const std::string& column) = 0;
  /// The place of that value.
  [[nodiscard]] virtual TextPlace place_of(const std::string& column) const = 0;

  bool take(const std::string& column, Parsed<std::int64_t> (*parse)(std::string_view), std::int64_t& to) {
    const std::optional<std::string> text = text_of(column);
    if (!text) return false;
    const Parsed<std::int64_t> parsed = parse(*text);
    to = parsed.value.value_or(0);
    return is_good(parsed, column);
  }
  bool is_good(const Parsed<std::int64_t>& parsed, const std::string& column) {
    if (!parsed.value) problems().add(place_of(column), parsed.error, parsed.help);
    return parsed.value.has_value();
  }
};

class CsvSource : public ColumnSource {
 public:
  CsvSource(const std::filesystem::path& path, const TraceOptions& options)
      : ColumnSource(path.string()), records_(path, problems()) {
    columns_ = choose_columns(records_.columns(), options, records_.header(), problems());
    for (const std::string& name : columns_.lengths) indices_.emplace(name, records_.index_of(name));
    if (!columns_.step.empty()) indices_.emplace(columns_.step, records_.index_of(columns_.step));
  }

 private:
  std::optional<Length> read() override {
    while (records_.next()) {
      if (const auto length = length_of_row()) return length;
    }
    return std::nullopt;
  }
  std::optional<std::string> text_of(const std::string& column) override { return records_.value(indices_.at(column)); }
  [[nodiscard]] TextPlace place_of(const std::string& column) const override {
    return records_.place(indices_.at(column));
  }

  CsvRecords records_;
  std::map<std::string, std::size_t> indices_;  // of the columns that are read
};

using SortedJson = nlohmann::json;  // finds each of many fields fast

/// The outermost level of a line, whatever is nested in it: maps and texts are kept empty, and of a list of whole
/// numbers is kept how many these are, as a list of that one number. The library prescribes the names of the functions
/// that the parser calls.
class Outline {
 public:
  enum class Problem { none, syntax, number, depth, fields, repeated };

  Outline() : value_(nullptr) {}

  [[nodiscard]] Problem problem() const { return problem_; }
  /// Index of the first byte that is not JSON, from 1.
  [[nodiscard]] std::size_t byte() const { return byte_; }
  /// The field that the line has more than once.
  [[nodiscard]] const std::string& repeated() const { return key_; }
  [[nodiscard]] SortedJson take() { return std::move(value_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put_whole(value); }
  bool number_unsigned(std::uint64_t value) { return put_whole(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string&) { return put(""); }
  bool binary(SortedJson::binary_t&) { return put(nullptr); }
  bool start_object(std::size_t) { return open(SortedJson::object()); }
  bool start_array(std::size_t) {
    if (depth_ == 1) list_ = key_;
    return open(SortedJson::array());
  }
  bool end_object() { return close(); }
  bool end_array() {
    if (depth_ == 2 && items_ > 0 && are_whole_) value_[list_].push_back(items_);
    return close();
  }
  bool key(std::string& name) {
    if (depth_ != 1) return true;
    key_ = std::move(name);
    return !value_.contains(key_) || refuse(Problem::repeated);
  }
  bool parse_error(std::size_t byte, const std::string&, const SortedJson::exception& error) {
    constexpr int number_too_large = 406;
    byte_ = byte;
    return refuse(error.id == number_too_large ? Problem::number : Problem::syntax);
  }

 private:
  bool refuse(Problem problem) {
    problem_ = problem;
    return false;
  }
  template <class Whole>
  bool put_whole(Whole value) {
    if (depth_ != 2) return put(value);
    ++items_;
    return true;
  }
  bool put(SortedJson value) {
    are_whole_ = false;
    if (depth_ == 0) {
      value_ = std::move(value);
      return true;
    }
    if (depth_ != 1 || !value_.is_object()) return true;
    value_[std::move(key_)] = std::move(value);
    return value_.size() <= most_columns || refuse(Problem::fields);
  }
  bool open(SortedJson empty) {
    if (!put(std::move(empty))) return false;
    items_ = 0;
    are_whole_ = depth_ == 1;
    return ++depth_ <= deepest_level || refuse(Problem::depth);
  }
  bool close() {
    --depth_;
    return true;
  }

  SortedJson value_;
  std::string key_;
  std::string list_;        ///< The field of the list, if one is open.
  std::int64_t items_ = 0;  ///< Whole numbers of it so far ...
  bool are_whole_ = false;  ///< ... and whether it has nothing else.
  int depth_ = 0;
  Problem problem_ = Problem::none;
  std::size_t byte_ = 0;
};

std::vector<std::string> fields_of(const SortedJson& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

// The column where the value of a field begins. Searches the text because the parser does not keep places.
int column_of(std::string_view line, const std::string& field) {
  const std::size_t name = line.find(fmt::format("\"{}\"", field));
  if (name == std::string_view::npos) return 1;
  const std::size_t colon = line.find(':', name + field.size() + 2);
  const std::size_t value = line.find_first_not_of(" \t", colon == std::string_view::npos ? name : colon + 1);
  return static_cast<int>(value == std::string_view::npos ? name : value) + 1;
}

class JsonlSource : public ColumnSource {
 public:
  JsonlSource(const std::filesystem::path& path, const TraceOptions& options)
      : ColumnSource(path.string()), lines_(path), options_(options) {}

 private:
  std::optional<Length> read() override {
    while (lines_.next_filled('\0')) {
      object_ = parsed_line();
      if (!object_.is_object()) continue;
      if (columns_.lengths.empty()) choose_fields(fields_of(object_));
      if (const auto length = length_of_row()) return length;
    }
    return std::nullopt;
  }

  void choose_fields(const std::vector<std::string>& names) {
    if (options_.column.empty() && is_table_by_name(names)) {
      problems().fail(
          place_at(1), "these fields state how many documents have a length: a table is read as CSV",
          "write a line length,count and a row for each length; if every line is a document, name the field "
          "of the lengths (--column, or column in data.lengths)");
    }
    columns_ = choose_columns(names, options_, place_at(1), problems());
  }

  // Null, with the problem added, if the line is not an object.
  SortedJson parsed_line() {
    constexpr const char* help = "every line is one object such as {\"length\": 4096}";
    Outline outline;
    SortedJson::sax_parse(lines_.text(), &outline);
    switch (outline.problem()) {
      case Outline::Problem::none:
        break;
      case Outline::Problem::syntax:
        add(static_cast<int>(std::min(std::max<std::size_t>(outline.byte(), 1), lines_.text().size() + 1)),
            "the line is not JSON", help);
        return {};
      case Outline::Problem::number:
        add(1, "a number of the line is too large for any computer", help);
        return {};
      case Outline::Problem::depth:
        add(1, fmt::format("the line is nested in more than {} levels", deepest_level), help);
        return {};
      case Outline::Problem::repeated:
        add(1, fmt::format("the field '{}' is here more than once", outline.repeated()), "remove all but one of them");
        return {};
      case Outline::Problem::fields:
        add(1, fmt::format("the line has more than {} fields", most_columns), help);
        return {};
    }
    SortedJson value = outline.take();
    if (!value.is_object()) add(1, "the line is not a JSON object", "write {\"length\": 4096}");
    return value;
  }

  std::optional<std::string> text_of(const std::string& column) override {
    const auto found = object_.find(column);
    if (found == object_.end()) {
      add(1, fmt::format("there is no field '{}'", column),
          fmt::format("the fields are: {}", joined(fields_of(object_), ", ")));
      return std::nullopt;
    }
    if (found->is_number()) return number_text(*found);
    if (found->is_array()) return number_of_tokens(column, *found);
    problems().add(place_of(column), fmt::format("'{}' is of type {}, not a number", column, found->type_name()),
                   found->is_string() ? "write the number without quotes" : "");
    return std::nullopt;
  }

  // A list of whole numbers is one of tokens, unless its name says that they are lengths.
  std::optional<std::string> number_of_tokens(const std::string& column, const SortedJson& list) {
    if (list.empty()) {
      problems().add(place_of(column), fmt::format("'{}' is a list, but not one of tokens", column),
                     "write their number, or a list of whole numbers");
    } else if (is_name_of_lengths(column)) {
      problems().add(place_of(column), fmt::format("'{}' is a list: by its name of lengths, and not of tokens", column),
                     "write a line for each document");
    } else {
      return number_text(list.front());
    }
    return std::nullopt;
  }

  // Whole numbers beyond 64 bits come back as doubles; as digits they get the message that fits.
  static std::string number_text(const SortedJson& number) {
    if (number.is_number_unsigned()) return fmt::format("{}", number.get<std::uint64_t>());
    if (number.is_number_integer()) return fmt::format("{}", number.get<std::int64_t>());
    const double value = number.get<double>();
    return std::abs(value) >= 1e18 && std::abs(value) < 1e40 ? fmt::format("{:.0f}", value) : json_line(value);
  }

  [[nodiscard]] TextPlace place_at(int column) const { return {lines_.text(), lines_.number(), column}; }
  [[nodiscard]] TextPlace place_of(const std::string& column) const override {
    return place_at(column_of(lines_.text(), column));
  }
  void add(int column, std::string message, std::string help) {
    problems().add(place_at(column), std::move(message), std::move(help));
  }

  LineReader lines_;
  TraceOptions options_;
  SortedJson object_;
};

}  // namespace

bool begins_with_length(const std::filesystem::path& path) {
  LineReader lines(path);
  if (!lines.next_filled('#')) return true;
  const std::string_view text = without_blanks(lines.text());
  const bool begins = std::string_view("0123456789.+-").find(text.front()) != std::string_view::npos;
  const bool are_several = text.find_first_of(",;| \t") != std::string_view::npos &&
                           text.find_first_not_of("0123456789.+-,;| \t") == std::string_view::npos;
  return begins && !are_several;
}

std::unique_ptr<LengthSource> open_lines(const std::filesystem::path& path) {
  return std::make_unique<LinesSource>(path);
}

std::unique_ptr<LengthSource> open_csv(const std::filesystem::path& path, const TraceOptions& options) {
  return std::make_unique<CsvSource>(path, options);
}

std::unique_ptr<LengthSource> open_jsonl(const std::filesystem::path& path, const TraceOptions& options) {
  return std::make_unique<JsonlSource>(path, options);
}

}  // namespace hdpsim
