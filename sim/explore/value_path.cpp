#include "sim/explore/value_path.h"

#include <fmt/format.h>

namespace hdpsim {
namespace {

bool is_at(const Position& position, const Position& place) {
  return position.line == place.line && position.column == place.column && position.file == place.file;
}

void search(const Value& value, const std::string& path, const Position& place, std::string& found) {
  if (is_at(value.position, place)) found = path;
  const std::string before = path.empty() ? "" : path + ".";
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    search(value.items[i], fmt::format("{}{}", before, i), place, found);
  }
  for (const auto& [key, position, of] : value.entries) {
    if (is_at(position, place)) found = before + key;
    search(of, before + key, place, found);
  }
}

}  // namespace

std::string path_of_place(const Value& document, const Position& place) {
  std::string found;
  search(document, "", place, found);
  return found;
}

}  // namespace hdpsim
