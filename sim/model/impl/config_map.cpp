#include <utility>

#include "sim/model/impl/config_reader.h"

namespace hdpsim {

std::int64_t ConfigMap::number(const Key& key, Range range) {
  if (key.name.empty()) return 0;
  if (key.fallback > 0) return number_or(key.name, range, key.fallback);
  return map_.required_in<std::int64_t>(key.name, range).value_or(0);
}

std::int64_t ConfigMap::number_or(std::string_view key, Range range, std::int64_t fallback) {
  if (key.empty()) return fallback;
  return map_.optional_in<std::int64_t>(key, range).value_or(fallback);
}

bool ConfigMap::truth(const Trait& trait) {
  if (trait.key.empty()) return trait.usual;
  const auto stated = map_.optional<bool>(trait.key);
  return stated ? *stated != trait.inverted : trait.usual;
}

const std::vector<Value>& ConfigMap::list(std::string_view key) {
  static const std::vector<Value> none;
  const Value* value = key.empty() ? nullptr : map_.find(key);
  return value != nullptr && value->is_sequence() ? value->items : none;
}

void ConfigMap::error_at(std::string_view key, std::string message, std::string help) {
  const Value* value = map_.value().find(key);
  map_.diagnostics().error(value != nullptr ? value->position : map_.value().position, std::move(message),
                           std::move(help));
}

}  // namespace hdpsim
