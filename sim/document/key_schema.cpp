#include "sim/document/key_schema.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace hdpsim {
namespace {

using Json = nlohmann::ordered_json;

Json schema_of(const std::vector<KeyText>& keys);

// Whole numbers as such, so that no tool shows 1.0.
Json number_of(double value) {
  if (std::fabs(value) < 1e15 && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

Json in_range(Json schema, const KeyShape& shape) {
  if (!shape.range) return schema;
  schema["minimum"] = number_of(shape.range->least);
  if (std::isfinite(shape.range->most)) schema["maximum"] = number_of(shape.range->most);
  return schema;
}

Json shared(const char* definition) {
  return {{"$ref", std::string("#/$defs/") + definition}};
}

// A choice of one word is a constant.
Json of_words(const std::vector<std::string>& words) {
  return words.size() == 1 ? Json{{"const", words.front()}} : Json{{"enum", words}};
}

Json schema_of(const KeyShape& shape) {
  using Kind = KeyShape::Kind;
  switch (shape.kind) {
    case Kind::anything:
      return Json::object();
    case Kind::flag:
      return {{"type", "boolean"}};
    case Kind::number:
      return in_range({{"type", "number"}}, shape);
    case Kind::count:
      return in_range(shared("count"), shape);
    case Kind::time:
      return shared("time");
    case Kind::bytes:
      return shared("bytes");
    case Kind::bandwidth:
      return shared("bandwidth");
    case Kind::text:
      return {{"type", "string"}};
    case Kind::word:
      return of_words(shape.words);
    case Kind::list:
      return {{"type", "array"}, {"items", schema_of(shape.parts.front())}};
    case Kind::map:
      return schema_of(shape.keys);
    case Kind::either:
      break;
  }
  Json parts = Json::array();
  for (const KeyShape& part : shape.parts) parts.push_back(schema_of(part));
  return {{"anyOf", parts}};
}

// As a tool that completes keys shows it: plain numbers and flags as themselves.
Json default_of(const KeyText& key) {
  const bool is_plain = key.fallback.find_first_not_of("0123456789.") == std::string::npos;
  const bool is_text = key.shape.kind == KeyShape::Kind::word;
  return !is_text && (is_plain || key.shape.kind == KeyShape::Kind::flag) ? Json::parse(key.fallback)
                                                                          : Json(key.fallback);
}

Json schema_of(const KeyText& key) {
  Json schema = {{"description", key.sentence}};
  schema.update(schema_of(key.shape));
  if (!key.fallback.empty()) schema["default"] = default_of(key);
  return schema;
}

Json schema_of(const std::vector<KeyText>& keys) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  Json required = Json::array();
  for (const KeyText& key : keys) {
    schema["properties"][key.name] = schema_of(key);
    if (key.notes.required) required.push_back(key.name);
  }
  if (!required.empty()) schema["required"] = required;
  return schema;
}

}  // namespace

std::string schema_definitions(const std::vector<std::pair<std::string, std::vector<KeyText>>>& maps) {
  Json definitions = Json::object();
  for (const auto& [name, keys] : maps) definitions[name] = schema_of(keys);
  return definitions.dump(2) + "\n";
}

}  // namespace hdpsim
