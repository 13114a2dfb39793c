#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/text.h"
#include "sim/document/input_file.h"
#include "sim/document/json.h"
#include "sim/document/limits.h"
#include "sim/trace/impl/file_source.h"
#include "sim/trace/impl/readers.h"
#include "sim/trace/impl/table_layout.h"

namespace hdpsim {
namespace {

using SortedJson = nlohmann::json;  // finds each of many fields fast

/// The outermost level of a line, whatever is nested in it: maps, lists and texts are kept empty. The library
/// prescribes the names of the functions that the parser calls.
class Outline {
 public:
  enum class Problem { none, syntax, number, depth, fields, repeated };

  Outline() : value_(nullptr) {}

  [[nodiscard]] Problem problem() const { return problem_; }
  /// Index of the first byte that is not JSON, from 1.
  [[nodiscard]] std::size_t byte() const { return byte_; }
  /// The field that stands in the line more than once.
  [[nodiscard]] const std::string& repeated() const { return key_; }
  [[nodiscard]] SortedJson take() { return std::move(value_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string&) { return put(""); }
  bool binary(SortedJson::binary_t&) { return put(nullptr); }
  bool start_object(std::size_t) { return open(SortedJson::object()); }
  bool start_array(std::size_t) { return open(SortedJson::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
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
  bool put(SortedJson value) {
    if (depth_ == 0) {
      value_ = std::move(value);
      return true;
    }
    if (depth_ != 1 || !value_.is_object()) return true;
    value_[std::move(key_)] = std::move(value);
    return value_.size() <= most_columns || refuse(Problem::fields);
  }
  bool open(SortedJson empty) { return put(std::move(empty)) && (++depth_ <= deepest_level || refuse(Problem::depth)); }
  bool close() {
    --depth_;
    return true;
  }

  SortedJson value_;
  std::string key_;
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

class JsonlSource : public FileSource {
 public:
  JsonlSource(const std::filesystem::path& path, const TraceOptions& options)
      : FileSource(path.string()), lines_(path), options_(options) {}

  [[nodiscard]] std::string column() const override { return columns_.told(); }

 private:
  std::optional<Length> read() override {
    while (lines_.next_filled('\0')) {
      const SortedJson object = parsed_line();
      if (!object.is_object()) continue;
      if (columns_.lengths.empty()) choose_fields(fields_of(object));
      Length length;
      bool good = take_tokens(object, length.tokens);
      if (!columns_.step.empty()) good = take(object, columns_.step, parse_step, length.step.emplace()) && good;
      if (good) return length;
    }
    return std::nullopt;
  }

  void choose_fields(const std::vector<std::string>& names) {
    const TextPlace place{lines_.text(), lines_.number(), 1};
    if (options_.column.empty() && is_table_by_name(names)) {
      problems().fail(
          place, "these fields tell how many documents have a length: a table is read as CSV",
          "write a line length,count and a row for each length; if every line is a document, name the field "
          "of the lengths (--column, or column in data.lengths)");
    }
    columns_ = choose_columns(names, options_, place, problems());
  }

  bool take_tokens(const SortedJson& object, std::int64_t& tokens) {
    const auto parse = [&](std::string_view text) { return columns_.parse(text); };
    bool good = true;
    for (const std::string& field : columns_.lengths) {
      std::int64_t part = 0;
      good = take(object, field, parse, part) && good;
      tokens += part;
    }
    if (!good || columns_.lengths.size() == 1) return good;
    const Parsed<std::int64_t> sum = checked_length(tokens);
    if (!sum.value) add(column_of(lines_.text(), columns_.lengths.front()), sum.error, sum.help);
    return sum.value.has_value();
  }

  // Null, with the problem reported, if the line is not an object.
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
        add(1, fmt::format("the field '{}' stands here more than once", outline.repeated()),
            "leave out all but one of them");
        return {};
      case Outline::Problem::fields:
        add(1, fmt::format("the line has more than {} fields", most_columns), help);
        return {};
    }
    SortedJson value = outline.take();
    if (!value.is_object()) add(1, "the line is not a JSON object", "write {\"length\": 4096}");
    return value;
  }

  template <class Parse>
  bool take(const SortedJson& object, const std::string& field, Parse parse, std::int64_t& to) {
    const auto found = object.find(field);
    if (found == object.end()) {
      add(1, fmt::format("there is no field '{}'", field),
          fmt::format("the fields are: {}", joined(fields_of(object), ", ")));
      return false;
    }
    if (found->is_number()) {
      const Parsed<std::int64_t> value = parse(number_text(*found));
      if (!value.value) add(column_of(lines_.text(), field), value.error, value.help);
      to = value.value.value_or(0);
      return value.value.has_value();
    }
    add(column_of(lines_.text(), field), fmt::format("'{}' is of type {}, not a number", field, found->type_name()),
        found->is_string() ? "write the number without quotes" : "");
    return false;
  }

  // Whole numbers beyond 64 bits come back as doubles; as digits they get the message that fits.
  static std::string number_text(const SortedJson& number) {
    if (number.is_number_unsigned()) return fmt::format("{}", number.get<std::uint64_t>());
    if (number.is_number_integer()) return fmt::format("{}", number.get<std::int64_t>());
    const double value = number.get<double>();
    return std::abs(value) >= 1e18 && std::abs(value) < 1e40 ? fmt::format("{:.0f}", value) : json_line(value);
  }

  void add(int column, std::string message, std::string help) {
    problems().add({lines_.text(), lines_.number(), column}, std::move(message), std::move(help));
  }

  LineReader lines_;
  TraceOptions options_;
  LengthColumns columns_;
};

}  // namespace

std::unique_ptr<LengthSource> open_jsonl(const std::filesystem::path& path, const TraceOptions& options) {
  return std::make_unique<JsonlSource>(path, options);
}

}  // namespace hdpsim
