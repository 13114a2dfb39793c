#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#define TOML_MAX_NESTED_VALUES 64  // deepest_level of sim/document/limits.h

#include "sim/import/impl/torchtitan_keys.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

static_assert(deepest_level == TOML_MAX_NESTED_VALUES);

/// Follows a text of TOML as far as it decides how deep its tables and arrays lie in each other, with a count and
/// without recursion: the parser descends into each part of a key, whose number it does not bound.
class DepthScanner {
 public:
  DepthScanner(const std::string& file, const std::string& text) : text_(text), place_{file, 1, 1} {}

  /// Where the limit is passed; empty if it is nowhere.
  std::optional<Position> first_too_deep() {
    while (at_ < text_.size()) {
      take();
      if (deepest_level < depth()) return place_;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] int depth() const { return header_ + parts_ + (open_.empty() ? 0 : open_.back().below); }

  void take() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') return skip_text(c);
    if (c == '#') return skip_comment();
    if (c == '\n' && open_.empty()) begin_statement();
    if (c == '.' && in_key_) ++parts_;
    if (c == '=') in_key_ = false;
    if (c == '[' || c == '{') open(c == '{');
    if (c == ']' || c == '}') close();
    if (c == ',' && !open_.empty() && open_.back().is_table) begin_key();
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') is_begun_ = true;
    advance();
  }

  void begin_key() {
    in_key_ = true;
    parts_ = 0;
  }

  void begin_statement() {
    if (is_header_) header_ = parts_ + 1;
    is_header_ = false;
    is_begun_ = false;
    begin_key();
  }

  // A bracket with which a line begins is that of a header, whose second one opens nothing.
  void open(bool is_table) {
    if (open_.empty() && in_key_ && !is_table) {
      if (!is_begun_) header_ = 0;
      is_header_ = true;
      return;
    }
    open_.push_back({depth() - header_ + 1, parts_, is_table});
    in_key_ = is_table;
    parts_ = 0;
  }

  void close() {
    if (is_header_ || open_.empty()) return;
    parts_ = open_.back().parts;
    open_.pop_back();
    in_key_ = false;
  }

  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') advance();
  }

  // A text of one line ends with it at the latest; one between three quotes may hold lines, and two quotes at its end.
  void skip_text(char quote) {
    is_begun_ = true;
    const std::string fence(3, quote);
    const bool is_long = text_.compare(at_, 3, fence) == 0;
    advance(is_long ? 3 : 1);
    while (at_ < text_.size()) {
      if (!is_long && text_[at_] == '\n') return;
      if (text_[at_] == '\\' && quote == '"') {
        advance(2);
      } else if (is_long ? text_.compare(at_, 3, fence) == 0 : text_[at_] == quote) {
        advance(is_long ? 3 : 1);
        while (is_long && at_ < text_.size() && text_[at_] == quote) advance();
        return;
      } else {
        advance();
      }
    }
  }

  void advance(std::size_t by = 1) {
    for (; by > 0 && at_ < text_.size(); --by, ++at_) {
      ++place_.column;
      if (text_[at_] == '\n') {
        ++place_.line;
        place_.column = 1;
      }
    }
  }

  /// A bracket or brace that is not closed yet.
  struct Open {
    int below = 0;  ///< Tables and arrays down to it, without those of the header.
    int parts = 0;  ///< Dots of the key that it belongs to.
    bool is_table = false;
  };

  const std::string& text_;
  Position place_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
  int header_ = 0;  // parts of the header above
  int parts_ = 0;   // dots of the key so far
  bool in_key_ = true;
  bool is_header_ = false;
  bool is_begun_ = false;  // this line has a key or a value
};

class TreeReader {
 public:
  TreeReader(const std::string& file, Diagnostics& diagnostics) : file_(file), diagnostics_(diagnostics) {}

  Value value(const toml::node& node) {
    const Position at = position(node.source());
    if (++values_ > most_values) {
      if (values_ == most_values + 1) report_limit(at, false, diagnostics_);
      return {};
    }
    if (const auto* table = node.as_table()) return map(*table, at);
    if (const auto* array = node.as_array()) {
      Value list = Value::sequence(at);
      for (const toml::node& item : *array) list.items.push_back(value(item));
      return list;
    }
    return scalar(node, at);
  }

 private:
  Value map(const toml::table& table, const Position& at) {
    Value map = Value::map(at);
    for (const auto& [key, node] : table) {
      Value inner = value(node);
      map.entries.push_back({std::string(key.str()), position(key.source()), std::move(inner)});
    }
    return map;
  }

  static Value scalar(const toml::node& node, const Position& at) {
    if (const auto* text = node.as_string()) {
      Value value = Value::scalar(text->get(), at);
      value.quoted = true;
      return value;
    }
    if (const auto* truth = node.as_boolean()) return Value::scalar(truth->get() ? "true" : "false", at);
    if (const auto* whole = node.as_integer()) return Value::scalar(std::to_string(whole->get()), at);
    if (const auto* number = node.as_floating_point()) return Value::scalar(fmt::format("{}", number->get()), at);
    return Value::scalar("a date", at);
  }

  [[nodiscard]] Position position(const toml::source_region& region) const {
    return {file_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
  }

  std::string file_;
  Diagnostics& diagnostics_;
  int values_ = 0;
};

}  // namespace

Value parse_toml(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  diagnostics.add_source(file, text);
  if (text.size() > largest_yaml_bytes) {
    report_size(file, largest_yaml_bytes, diagnostics);
    return {};
  }
  if (const auto place = DepthScanner(file, text).first_too_deep()) {
    report_limit(*place, true, diagnostics);
    return {};
  }
  const toml::parse_result parsed = toml::parse(text, std::string_view(file));
  if (parsed.failed()) {
    const toml::parse_error& error = parsed.error();
    const auto& begin = error.source().begin;
    diagnostics.error({file, static_cast<int>(begin.line), static_cast<int>(begin.column)},
                      std::string(error.description()));
    return {};
  }
  return TreeReader(file, diagnostics).value(parsed.table());
}

}  // namespace hdpsim
