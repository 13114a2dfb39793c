#include "sim/document/key_schema.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/document/json.h"

namespace hdpsim {
namespace {

using Kind = KeyShape::Kind;

// Whole numbers are written as integers, so that no tool shows 1.0.
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

Json text_like(const char* description, const char* pattern) {
  return {{"description", description}, {"type", "string"}, {"pattern", pattern}};
}

Json count_schema() {
  Json texts = {{"type", "string"}, {"pattern", "^-?[0-9]+(\\.[0-9]+)?([kKMGT]i?)?$"}};
  return {{"description", "A whole number, also as 256Ki, 2Mi (powers of 1024) or 32k, 100M (powers of 1000)"},
          {"anyOf", {{{"type", "integer"}}, std::move(texts)}}};
}

// The default in the form that an editor shows: plain numbers and flags as themselves.
Json default_of(const KeyText& key) {
  const bool is_plain = key.fallback.find_first_not_of("0123456789.") == std::string::npos;
  const bool is_text = key.shape.kind == Kind::word || key.shape.kind == Kind::text;
  return !is_text && (is_plain || key.shape.kind == Kind::flag) ? parsed_json(key.fallback) : Json(key.fallback);
}

/// Writes schemas, and on the way the definitions that they refer to.
class SchemaWriter {
 public:
  explicit SchemaWriter(bool partial) : partial_(partial) {}

  Json of(const KeyShape& shape) {
    if (shape.definition.empty()) return body_of(shape);
    if (shape.definition.find('.') != std::string::npos) return {{"$ref", shape.definition}};
    // A map may be completed from elsewhere where another key has the same definition, so what it needs stands here.
    Json reference = refer_to(shape.definition, [&] { return body_of(shape); });
    require(shape.keys, reference);
    return reference;
  }

  Json of(const std::vector<KeyText>& keys) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    for (const KeyText& key : keys) schema["properties"][key.name] = of(key);
    return schema;
  }

  void require(const std::vector<KeyText>& keys, Json& schema) const {
    if (partial_) return;
    Json required = Json::array();
    for (const KeyText& key : keys) {
      if (key.notes.required) required.push_back(key.name);
    }
    if (!required.empty()) schema["required"] = required;
  }

  [[nodiscard]] const Json& definitions() const { return definitions_; }

 private:
  template <class Make>
  Json refer_to(const std::string& name, const Make& make) {
    if (!definitions_.contains(name)) {
      definitions_[name] = Json();  // keeps its place
      definitions_[name] = make();
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  Json quantity(const char* name, const char* description, const char* pattern) {
    return refer_to(name, [&] { return text_like(description, pattern); });
  }

  Json body_of(const KeyShape& shape) {
    switch (shape.kind) {
      case Kind::anything:
        return Json::object();
      case Kind::nothing:
        return {{"type", "null"}};
      case Kind::flag:
        return {{"type", "boolean"}};
      case Kind::number:
        return in_range({{"type", "number"}}, shape);
      case Kind::count:
        return in_range(refer_to("count", count_schema), shape);
      case Kind::time:
        return quantity("time", "A time with its unit: 5 us, 1.5 ms, 2 s", "^[-+0-9.eE]+ ?(ps|ns|us|ms|s|min|h)$");
      case Kind::bytes:
        return quantity("bytes", "An amount of data with its unit: 80 GB (1e9 bytes), 64 MiB",
                        "^[-+0-9.eE]+ ?([kKMGTP]i?)?B$");
      case Kind::bandwidth:
        return quantity("bandwidth", "A data rate with its unit: 50 GB/s (bytes) or 400 Gbit/s (bits)",
                        "^[-+0-9.eE]+ ?([kKMGTP]i?)?(B|bit)/s$");
      case Kind::flop_rate:
        return quantity("flops", "An arithmetic speed with its unit: 312 TFLOP/s", "^[-+0-9.eE]+ ?[kMGTP]?FLOP/s$");
      case Kind::text:
        return {{"type", "string"}};
      default:
        return compound(shape);
    }
  }

  // YAML reads a word of digits as a number.
  static Json value_of(const std::string& word) {
    const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? parsed_json(word) : Json(word);
  }

  static Json choice_of(const std::vector<std::string>& words) {
    if (words.size() == 1) return {{"const", value_of(words.front())}};
    Json values = Json::array();
    for (const std::string& word : words) values.push_back(value_of(word));
    return {{"enum", values}};
  }

  // A choice of one word is a constant.
  Json compound(const KeyShape& shape) {
    switch (shape.kind) {
      case Kind::word:
        return choice_of(shape.words);
      case Kind::list:
        return {{"type", "array"}, {"items", of(shape.parts.front())}};
      case Kind::dictionary:
        return {{"type", "object"}, {"additionalProperties", of(shape.parts.front())}};
      case Kind::map:
        return map(shape);
      default:
        break;
    }
    Json parts = Json::array();
    for (const KeyShape& part : shape.parts) parts.push_back(of(part));
    return {{"anyOf", parts}};
  }

  Json map(const KeyShape& shape) {
    Json schema = of(shape.keys);
    if (shape.definition.empty()) require(shape.keys, schema);
    if (shape.open) schema.erase("additionalProperties");
    if (shape.single) schema.update({{"minProperties", 1}, {"maxProperties", 1}});
    return schema;
  }

  Json of(const KeyText& key) {
    Json schema = Json::object();
    if (!key.sentence.empty()) schema["description"] = key.sentence;
    schema.update(of(key.shape));
    if (!key.fallback.empty()) schema["default"] = default_of(key);
    return schema;
  }

  bool partial_;
  Json definitions_ = Json::object();
};

}  // namespace

std::string json_schema(std::string_view title, const std::vector<KeyText>& keys, bool partial) {
  SchemaWriter writer(partial);
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(writer.of(keys));
  writer.require(keys, schema);
  schema["$defs"] = writer.definitions();
  return json_page(schema);
}

}  // namespace hdpsim
