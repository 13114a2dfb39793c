#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#define TOML_MAX_NESTED_VALUES 64  // deepest_level of sim/document/limits.h

#include "sim/import/impl/toml_document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <sstream>
#include <string_view>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

static_assert(deepest_level == TOML_MAX_NESTED_VALUES);

// The parts of a key are tables in each other, whose number the parser does not bound; all of them are on one line,
// outside of strings and comments.
constexpr int most_dots_of_line = 100;

bool has_deep_keys(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  int dots = 0;
  char quote = 0;
  bool is_comment = false;
  Position at{file, 1, 1};
  for (const char c : text) {
    if (c == '\n') {
      ++at.line;
      dots = 0;
      quote = 0;
      is_comment = false;
    } else if (is_comment) {
      continue;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      is_comment = true;
    } else if (c == '.' && ++dots > most_dots_of_line) {
      report_limit(at, true, diagnostics);
      return true;
    }
  }
  return false;
}

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
  if (has_deep_keys(file, text, diagnostics)) return {};
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
