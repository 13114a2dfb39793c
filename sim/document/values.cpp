#include "sim/document/values.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

Json scalar_json(const Value& value) {
  if (value.quoted) return value.text;
  if (value.text == "true" || value.text == "false") return value.text == "true";
  if (const auto count = parse_count(value.text); count.value) return *count.value;
  Diagnostics not_a_number;
  if (const auto number = read<double>(value, not_a_number)) return *number;
  return value.text;
}

}  // namespace

Json json_of(const Value& value) {
  Json json;
  switch (value.kind) {
    case Value::Kind::null:
      break;
    case Value::Kind::scalar:
      json = scalar_json(value);
      break;
    case Value::Kind::sequence:
      json = Json::array();
      for (const Value& item : value.items) json.push_back(json_of(item));
      break;
    case Value::Kind::map:
      json = Json::object();
      for (const auto& entry : value.entries) json[entry.key] = json_of(entry.value);
      break;
  }
  return json;
}

std::string json_line_of(const Value& value) {
  return json_line(json_of(value));
}

std::string line_of(const Value& value) {
  std::vector<std::string> parts;
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return value.text;
    case Value::Kind::sequence:
      for (const Value& item : value.items) parts.push_back(line_of(item));
      return fmt::format("[{}]", joined(parts, ", "));
    case Value::Kind::map:
      for (const auto& entry : value.entries) parts.push_back(fmt::format("{}: {}", entry.key, line_of(entry.value)));
      return fmt::format("{{{}}}", joined(parts, ", "));
  }
  return {};
}

}  // namespace hdpsim
