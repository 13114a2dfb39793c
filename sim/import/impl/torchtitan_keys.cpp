#include "sim/import/impl/torchtitan_keys.h"

#include <algorithm>
#include <utility>

#include "sim/import/impl/megatron_model.h"

namespace hdpsim {
namespace {

const KeyRule* rule_at(std::string_view path) {
  const std::size_t dot = path.find_last_of('.');
  if (dot == std::string_view::npos) return nullptr;
  const std::string_view tables = path.substr(0, dot);
  const std::size_t last = tables.find_last_of('.');
  return toml_rule(last == std::string_view::npos ? tables : tables.substr(last + 1), path.substr(dot + 1));
}

}  // namespace

TorchtitanKeys::TorchtitanKeys(const Value& root, std::string file, Diagnostics& diagnostics)
    : ConfigKeys(root, std::move(file), rule_at, diagnostics) {}

const Value* TorchtitanKeys::find(std::string_view table, std::string_view key) const {
  const Value* section = root().find(table);
  return section == nullptr ? nullptr : section->find(key);
}

const Value* TorchtitanKeys::find_degree(std::string_view key) const {
  for (const std::string_view home : homes_of_degrees()) {
    if (const Value* value = find(home, key)) return value;
  }
  return nullptr;
}

std::int64_t TorchtitanKeys::degree_of(std::string_view key) const {
  return number(find_degree(key), key, megatron_ranges::degree, 1);
}

}  // namespace hdpsim
