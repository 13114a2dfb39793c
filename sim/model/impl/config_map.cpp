#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/model/impl/config_reader.h"

namespace hdpsim {

std::int64_t ConfigMap::number(const Key& key, Range range) {
  if (key.name.empty()) return 0;
  if (!key.other_name.empty() && map_.find(key.name) == nullptr && map_.find(key.other_name) != nullptr) {
    return number({key.other_name}, range);
  }
  if (key.fallback > 0) return number_or(key.name, range, key.fallback);
  if (is_told_missing(key.name)) return 0;
  return of_all_layers(key.name, range).value_or(0);
}

std::int64_t ConfigMap::number_or(std::string_view key, Range range, std::int64_t fallback) {
  if (key.empty() || is_auto(key) || map_.find(key) == nullptr) return fallback;
  return of_all_layers(key, range).value_or(fallback);
}

bool ConfigMap::truth(const Trait& trait) {
  if (trait.key.empty()) return trait.usual;
  const auto stated = map_.optional<bool>(trait.key);
  return stated ? *stated != trait.inverted : trait.usual;
}

const std::vector<Value>& ConfigMap::list(std::string_view key) {
  const Value* value = key.empty() ? nullptr : map_.find(key);
  if (value != nullptr && !value->is_sequence() && told_.emplace(key).second) {
    map_.diagnostics().error(value->position, fmt::format("'{}' must be a list", key), "write [...], an item a layer");
  }
  return list_if_there(key);
}

const std::vector<Value>& ConfigMap::list_if_there(std::string_view key) {
  static const std::vector<Value> none;
  const Value* value = key.empty() ? nullptr : map_.find(key);
  return value != nullptr && value->is_sequence() ? value->items : none;
}

// The number of a key that has one, or a list of the same one for every layer.
std::optional<std::int64_t> ConfigMap::of_all_layers(std::string_view key, Range range) {
  const std::vector<Value>& items = list_if_there(key);
  const auto is_first = [&](const Value& item) { return item.is_scalar() && item.text == items.front().text; };
  if (items.empty() || !std::all_of(items.begin(), items.end(), is_first)) {
    return map_.required_in<std::int64_t>(key, range);
  }
  return read_in<std::int64_t>(items.front(), fmt::format("'{}'", key), range, map_.diagnostics());
}

bool ConfigMap::is_auto(std::string_view key) {
  const Value* value = map_.find(key);
  return value != nullptr && value->is_scalar() && value->text == "auto";
}

bool ConfigMap::is_told_missing(std::string_view key) {
  return map_.find(key) == nullptr && !told_.emplace(key).second;
}

void ConfigMap::error_at(std::string_view key, std::string message, std::string help) {
  const Value* value = map_.value().find(key);
  map_.diagnostics().error(value != nullptr ? value->position : map_.value().position, std::move(message),
                           std::move(help));
}

}  // namespace hdpsim
