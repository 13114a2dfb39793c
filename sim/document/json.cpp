#include "sim/document/json.h"

#include <nlohmann/json.hpp>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

std::string dumped(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_page(const Json& value) {
  return dumped(value, 2) + "\n";
}

std::string json_line(const Json& value) {
  return dumped(value, -1);
}

std::string json_string(std::string_view text) {
  return json_line(text);
}

Json parsed_json(std::string_view text) {
  if (is_nested_too_deeply(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

bool is_nested_too_deeply(std::string_view json) {
  int depth = 0;
  bool is_text = false;
  for (std::size_t at = 0; at < json.size() && depth <= deepest_level; ++at) {
    const char c = json[at];
    if (c == '"') is_text = !is_text;
    if (is_text) {
      at += c == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return depth > deepest_level;
}

}  // namespace hdpsim
