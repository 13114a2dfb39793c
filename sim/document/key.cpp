#include "sim/document/key.h"

#include <fmt/format.h>

#include <utility>

#include "sim/base/text.h"

namespace hdpsim {
namespace {

std::string_view kind_text(KeyShape::Kind kind) {
  using Kind = KeyShape::Kind;
  switch (kind) {
    case Kind::flag:
      return "true or false";
    case Kind::number:
      return "a number";
    case Kind::count:
      return "a whole number";
    case Kind::time:
      return "a time";
    case Kind::bytes:
      return "an amount of data";
    case Kind::bandwidth:
      return "a data rate";
    case Kind::flop_rate:
      return "an arithmetic speed";
    case Kind::text:
      return "a text";
    case Kind::map:
    case Kind::dictionary:
      return "a map";
    case Kind::nothing:
      return "nothing";
    case Kind::anything:
      return "anything";
    case Kind::word:
    case Kind::list:
    case Kind::either:
      break;
  }
  return "";
}

// "`fp32`, `bf16` or `fp16`"
std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char* joint = i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += fmt::format("{}`{}`", joint, words[i]);
  }
  return text;
}

}  // namespace

std::string KeyShape::text() const {
  if (kind == Kind::word) return text_of(words);
  if (kind == Kind::list) return fmt::format("a list of these: {}", parts.front().text());
  if (kind == Kind::either) {
    std::vector<std::string> texts;
    for (const KeyShape& part : parts) texts.push_back(part.text());
    return joined(texts, ", or ");
  }
  const std::string what = unit.empty() ? std::string(kind_text(kind)) : unit;
  return limits.empty() ? what : fmt::format("{} {}", what, limits);
}

KeyShape shape_of(KeyShape::Kind kind) {
  KeyShape shape;
  shape.kind = kind;
  return shape;
}

KeyShape count_shape(const Range& range, std::string unit) {
  KeyShape shape = shape_of(KeyShape::Kind::count);
  shape.limits = range_text(range);
  shape.range = range;
  shape.unit = std::move(unit);
  return shape;
}

KeyShape number_shape(const Range& range) {
  KeyShape shape = shape_of(KeyShape::Kind::number);
  shape.limits = range_text(range);
  shape.range = range;
  return shape;
}

KeyShape word_shape(std::vector<std::string> words) {
  KeyShape shape = shape_of(KeyShape::Kind::word);
  shape.words = std::move(words);
  return shape;
}

KeyShape list_shape(KeyShape item) {
  KeyShape shape = shape_of(KeyShape::Kind::list);
  shape.parts.push_back(std::move(item));
  return shape;
}

KeyShape either_shape(std::vector<KeyShape> parts) {
  KeyShape shape = shape_of(KeyShape::Kind::either);
  shape.parts = std::move(parts);
  return shape;
}

KeyShape map_shape(std::vector<KeyText> keys) {
  KeyShape shape = shape_of(KeyShape::Kind::map);
  shape.keys = std::move(keys);
  return shape;
}

KeyShape dictionary_shape(KeyShape value) {
  KeyShape shape = shape_of(KeyShape::Kind::dictionary);
  shape.parts.push_back(std::move(value));
  return shape;
}

KeyShape defined(std::string name, KeyShape shape) {
  shape.definition = std::move(name);
  return shape;
}

}  // namespace hdpsim
