#include "sim/document/json.h"

#include <nlohmann/json.hpp>

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
  return Json::parse(text, nullptr, false);
}

}  // namespace hdpsim
