#include <fmt/format.h>

#include <sstream>

#include "sim/base/diagnostic.h"
#include "tests/fuzz/change.h"

namespace hdpsim::fuzz {
namespace {

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      json += fmt::format("\\u{:04x}", c);
      continue;
    }
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

/// As JSON writers do; what is a number or a word of JSON in the tree stays one.
std::string json_of(const Value& value) {
  std::string text;
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar: {
      const bool is_word = value.text == "true" || value.text == "false" || value.text == "null";
      const bool is_number =
          !value.text.empty() && value.text.find_first_not_of("-+.0123456789eE") == std::string::npos;
      return !value.quoted && (is_word || is_number) ? value.text : quoted(value.text);
    }
    case Value::Kind::sequence:
      for (const Value& item : value.items) text += (text.empty() ? "" : ",") + json_of(item);
      return "[" + text + "]";
    case Value::Kind::map:
      break;
  }
  for (const Value::Entry& entry : value.entries) {
    text += (text.empty() ? "" : ",") + quoted(entry.key) + ":" + json_of(entry.value);
  }
  return "{" + text + "}";
}

std::optional<Value> document_of(const std::string& text) {
  Diagnostics diagnostics;
  Value value = parse_document("seed", text, diagnostics);
  if (!diagnostics.empty() || value.is_null()) return std::nullopt;
  return value;
}

bool is_of_lines(std::string_view extension) {
  return extension == ".csv" || extension == ".txt" || extension == ".jsonl" || extension == ".args";
}

/// Cells of CSV, words of text, or arguments, one a line.
Value cells_of(std::string_view extension, const std::string& line) {
  const char between = extension == ".csv" ? ',' : extension == ".txt" ? ' ' : '\n';
  Value row = Value::sequence();
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, between);) {
    if (!cell.empty() || between == ',') row.items.push_back(Value::scalar(cell));
  }
  return row;
}

std::string line_of(std::string_view extension, const Value& line) {
  if (extension == ".jsonl") return json_of(line);
  if (!line.is_sequence()) return line.text;
  std::string text;
  for (std::size_t i = 0; i < line.items.size(); ++i) {
    if (i > 0) text += extension == ".csv" ? "," : extension == ".txt" ? " " : "\n";
    const Value& cell = line.items[i];
    text += cell.is_scalar() ? cell.text : json_of(cell);
  }
  return text;
}

}  // namespace

std::optional<Value> tree_of(std::string_view extension, const std::string& text) {
  if (extension == ".yaml" || extension == ".json") return document_of(text);
  if (!is_of_lines(extension)) return std::nullopt;
  Value tree = Value::sequence();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto parsed = extension == ".jsonl" ? document_of(line) : cells_of(extension, line);
    if (!parsed) return std::nullopt;
    tree.items.push_back(std::move(*parsed));
  }
  return tree;
}

std::string text_of_tree(std::string_view extension, const Value& tree) {
  if (extension == ".yaml") return to_yaml(tree);
  if (extension == ".json") return json_of(tree);
  std::string text;
  for (const Value& line : tree.items) text += line_of(extension, line) + "\n";
  return text;
}

}  // namespace hdpsim::fuzz
