#include "sim/document/json_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

/// How far a parser has read, and where it stops if it has found no value until then.
struct Reading {
  const char* reached;
  const char* most;

  void found_something(const char* end) { most = reached + std::min<std::ptrdiff_t>(longest_line, end - reached); }
};

/// Thrown through the parser by a value that does not end.
struct TooLong {};

/// Text that records how far a parser has read.
class TrackedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedText(const char* at, Reading* reading) : at_(at), reading_(reading) {}
  reference operator*() const { return *at_; }
  TrackedText& operator++() {
    if (at_ == reading_->most) throw TooLong();
    reading_->reached = ++at_;
    return *this;
  }
  friend bool operator==(const TrackedText& a, const TrackedText& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  Reading* reading_;
};

/// Line and column of places that are asked for from front to back.
class LineCounter {
 public:
  LineCounter(const std::string& file, const char* begin) : file_(file), counted_(begin), line_start_(begin) {}

  Position position(const char* at) {
    for (; counted_ < at; ++counted_) {
      if (*counted_ != '\n') continue;
      ++line_;
      line_start_ = counted_ + 1;
    }
    return {file_, line_, static_cast<int>(at - line_start_) + 1};
  }

 private:
  const std::string& file_;
  const char* counted_;
  const char* line_start_;
  int line_ = 1;
};

bool is_of_number(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/// Builds the document from the parser's events; the names of these functions are the library's.
class ItemBuilder {
 public:
  ItemBuilder(const std::string& file, const std::string& text, const TakeItem& take, Diagnostics& diagnostics)
      : begin_(text.data()),
        end_(begin_ + text.size()),
        reading_{begin_, begin_},
        lines_(file, begin_),
        take_(take),
        diagnostics_(diagnostics) {
    reading_.found_something(end_);
  }

  /// Parses the text. False if it is not JSON, or was refused.
  [[nodiscard]] bool parse() {
    try {
      return nlohmann::json::sax_parse(TrackedText(begin_, &reading_), TrackedText(end_, &reading_), this);
    } catch (const TooLong&) {
      diagnostics_.error(lines_.position(reading_.most - longest_line),
                         fmt::format("a value is longer than {} MiB", longest_line >> 20), "is the file complete?");
      refused_ = true;
      return false;
    }
  }
  [[nodiscard]] Value take_root() { return std::move(root_); }
  [[nodiscard]] bool refused() const { return refused_; }
  [[nodiscard]] Position end() { return lines_.position(reading_.reached); }

  bool null() {
    Value value;
    value.position = lines_.position(reading_.reached - 4);
    return open(value.position) && close(std::move(value));
  }
  bool boolean(bool is_true) { return scalar(reading_.reached - (is_true ? 4 : 5), is_true ? "true" : "false"); }
  bool number_integer(std::int64_t) { return number(); }
  bool number_unsigned(std::uint64_t) { return number(); }
  bool number_float(double, const std::string&) { return number(); }
  bool string(std::string& text) {
    quoted_ = true;
    return scalar(start_of_string(), std::move(text));
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return start(Value::Kind::map); }
  bool start_array(std::size_t) { return start(Value::Kind::sequence); }
  bool end_object() { return end_nested(); }
  bool end_array() { return end_nested(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

  bool key(std::string& text) {
    reading_.found_something(end_);
    Nested& map = nested_.back();
    map.key_position = lines_.position(start_of_string());
    if (!map.keys.insert(text).second && diagnostics_.keeps(map.key_position)) {
      diagnostics_.error(map.key_position, fmt::format("the key '{}' is stated a second time here", text),
                         "remove one of them");
    }
    map.key = std::move(text);
    return true;
  }

 private:
  struct Nested {
    Value value;
    std::string key;  // key of the entry that is being read
    Position key_position;
    std::set<std::string> keys;  // keys so far
  };

  // Opens a value. False, with a problem reported, if it is one too many.
  bool open(const Position& position) {
    reading_.found_something(end_);
    const bool is_item = nested_.size() == 2 && nested_[1].value.is_sequence();
    if (is_item) values_before_item_ = values_;
    if (static_cast<int>(nested_.size()) <= deepest_level && ++values_ <= most_values) return true;
    report_limit(position, static_cast<int>(nested_.size()) > deepest_level, diagnostics_);
    refused_ = true;
    return false;
  }

  bool close(Value value) {
    if (nested_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Nested& parent = nested_.back();
    if (parent.value.is_map()) {
      if (parent.value.entries.size() < parent.keys.size()) {
        parent.value.entries.push_back({std::move(parent.key), std::move(parent.key_position), std::move(value)});
      }
    } else if (nested_.size() == 2 && nested_[0].value.is_map() && take_(nested_[0].value, nested_[0].key, value)) {
      values_ = values_before_item_;
    } else {
      parent.value.items.push_back(std::move(value));
    }
    return true;
  }

  bool start(Value::Kind kind) {
    Value value;
    value.kind = kind;
    value.position = lines_.position(reading_.reached - 1);
    if (!open(value.position)) return false;
    nested_.push_back({std::move(value), {}, {}, {}});
    return true;
  }

  bool end_nested() {
    reading_.found_something(end_);
    Value value = std::move(nested_.back().value);
    nested_.pop_back();
    return close(std::move(value));
  }

  bool scalar(const char* start, std::string text) {
    Value value = Value::scalar(std::move(text), lines_.position(start));
    value.quoted = std::exchange(quoted_, false);
    return open(value.position) && close(std::move(value));
  }

  // Takes a number as it is written. The parser has read one character beyond it, unless the text ends there.
  bool number() {
    const char* end = is_of_number(reading_.reached[-1]) ? reading_.reached : reading_.reached - 1;
    const char* start = end;
    while (start > begin_ && is_of_number(start[-1])) --start;
    return scalar(start, std::string(start, end));
  }

  // Searches backwards from the closing quote for the quote that no backslash escapes.
  const char* start_of_string() const {
    const char* at = reading_.reached - 2;
    const auto is_escaped = [&] {
      const char* slash = at;
      while (slash > begin_ && slash[-1] == '\\') --slash;
      return (at - slash) % 2 == 1;
    };
    while (*at != '"' || is_escaped()) --at;
    return at;
  }

  const char* begin_;
  const char* end_;
  Reading reading_;
  LineCounter lines_;
  const TakeItem& take_;
  Diagnostics& diagnostics_;
  std::vector<Nested> nested_;
  Value root_;
  int values_ = 0;
  int values_before_item_ = 0;
  bool quoted_ = false;
  bool refused_ = false;
};

}  // namespace

std::optional<Value> parse_json(const std::string& file, const std::string& text, const TakeItem& take,
                                Diagnostics& diagnostics) {
  const auto first = std::find_if(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) == 0; });
  if (first == text.end() || *first != '{') return std::nullopt;
  Diagnostics found;
  ItemBuilder builder(file, text, take, found);
  const bool good = builder.parse();
  if (!good && !builder.refused()) {
    if (text.size() <= largest_yaml_bytes) return std::nullopt;
    found.error(builder.end(), "this is no JSON from here on", "is the file complete?");
  }
  if (!found.empty() && text.size() <= largest_shown_bytes) diagnostics.add_source(file, text);
  diagnostics.append(found);
  return builder.take_root();
}

Value load_outline(const std::string& path, Diagnostics& diagnostics) {
  const auto text = read_text_file(path, diagnostics);
  if (!text) return {};
  // Ends the reading early: the outermost level before the first long list says what the file is, if it has a schema.
  struct Enough {
    Value so_far;
  };
  int taken = 0;
  const TakeItem take_all = [&](const Value& so_far, std::string_view, const Value&) {
    if (so_far.find("schema") != nullptr || ++taken > most_values) throw Enough{so_far};
    return true;
  };
  try {
    if (auto outline = parse_json(path, *text, take_all, diagnostics)) return std::move(*outline);
  } catch (Enough& enough) {
    return std::move(enough.so_far);
  }
  return parse_document(path, *text, diagnostics);
}

}  // namespace hdpsim
