#include "sim/import/impl/torchtitan_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/import/impl/megatron_model.h"

namespace hdpsim {
namespace {

// Whether a key has another value than the usual one.
bool says_more(const Value& value, std::string_view usual) {
  if (value.is_scalar()) return !value.text.empty() && value.text != usual;
  return std::any_of(value.items.begin(), value.items.end(), [&](const Value& item) { return item.text != usual; });
}

}  // namespace

const Value* TorchtitanKeys::find(std::string_view table, std::string_view key) const {
  const Value* section = root_.find(table);
  return section == nullptr ? nullptr : section->find(key);
}

const Value* TorchtitanKeys::find_degree(std::string_view key) const {
  for (const std::string_view home : homes_of_degrees()) {
    if (const Value* value = find(home, key)) return value;
  }
  return nullptr;
}

std::int64_t TorchtitanKeys::number(const Value* value, std::string_view name, Range range,
                                    std::int64_t otherwise) const {
  if (value == nullptr) return otherwise;
  return read_in<std::int64_t>(*value, fmt::format("'{}'", name), range, diagnostics_).value_or(otherwise);
}

std::int64_t TorchtitanKeys::degree_of(std::string_view key) const {
  return number(find_degree(key), key, megatron_ranges::degree, 1);
}

std::string TorchtitanKeys::word(const Value* value, std::string_view otherwise) const {
  if (value == nullptr) return std::string(otherwise);
  return read<std::string>(*value, diagnostics_).value_or(std::string(otherwise));
}

bool TorchtitanKeys::truth(const Value* value) const {
  return value != nullptr && read<bool>(*value, diagnostics_).value_or(false);
}

Position TorchtitanKeys::position(const Value* value) const {
  return value == nullptr ? Position{file_, 0, 0} : value->position;
}

void TorchtitanKeys::unmodelled(std::string_view name, const Value* value, std::string_view follows,
                                const LikelyEffect& effect) {
  notes_.push_back({ImportNote::Kind::unmodelled, value == nullptr ? Position{} : value->position,
                    difference_text(name, follows, effect)});
}

void TorchtitanKeys::assume(std::string text, const Value* value) {
  notes_.push_back({ImportNote::Kind::assumed, value == nullptr ? Position{} : value->position, std::move(text)});
}

void TorchtitanKeys::note_rest() {
  for (const Value::Entry& table : root_.entries) {
    if (table.value.is_map()) {
      note_table(table.key, table.key, table.value);
    } else {
      note_unknown(table.key, table);
    }
  }
}

// A table in a table (`quantize.linear.float8`) is known by its last name.
void TorchtitanKeys::note_table(const std::string& path, const std::string& table, const Value& map) {
  for (const Value::Entry& entry : map.entries) {
    const std::string name = fmt::format("{}.{}", path, entry.key);
    if (entry.value.is_map() && toml_rule(table, entry.key) == nullptr) {
      note_table(name, entry.key, entry.value);
    } else {
      note_key(name, table, entry);
    }
  }
}

void TorchtitanKeys::note_key(const std::string& name, const std::string& table, const Value::Entry& entry) {
  const TomlRule* rule = toml_rule(table, entry.key);
  if (rule == nullptr) return note_unknown(name, entry);
  if (rule->role == TomlRule::Role::idle) {
    notes_.push_back({ImportNote::Kind::ignored, entry.position, name});
  } else if (rule->role == TomlRule::Role::unmodelled && says_more(entry.value, rule->usual)) {
    const std::string text = entry.value.is_scalar() ? fmt::format("{} = {}", name, entry.value.text) : name;
    unmodelled(text, &entry.value, rule->follows, rule->effect);
  }
}

void TorchtitanKeys::note_unknown(const std::string& name, const Value::Entry& entry) {
  const NameHint* hint = hint_of_name(name);
  notes_.push_back({ImportNote::Kind::unknown, entry.position,
                    hint == nullptr ? name : difference_text(name, hint->follows, hint->effect)});
}

}  // namespace hdpsim
