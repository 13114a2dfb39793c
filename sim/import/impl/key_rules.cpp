#include "sim/import/impl/key_rules.h"

#include <algorithm>

namespace hdpsim {
namespace {

// How much of a path a rule names; 0: it is not for that path.
std::size_t letters_matched(const KeyRule& rule, std::string_view path) {
  const std::size_t of_table = rule.table.empty() ? 0 : rule.table.size() + 1;
  if (of_table > 0 && (!path.starts_with(rule.table) || path.size() < of_table || path[of_table - 1] != '.')) return 0;
  const std::string_view key = path.substr(of_table);
  if (rule.key == key) return path.size() + 1;
  if (!rule.key.ends_with('*')) return 0;
  const std::string_view begin = rule.key.substr(0, rule.key.size() - 1);
  return key.starts_with(begin) ? std::max<std::size_t>(of_table + begin.size(), 1) : 0;
}

}  // namespace

std::vector<std::string_view> words_in(std::string_view list) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    if (end > at) words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<KeyRule> rules_of(std::span<const KeyRule> unmodelled, std::span<const PlainKeys> stated,
                              std::span<const PlainKeys> idle) {
  std::vector<KeyRule> made(unmodelled.begin(), unmodelled.end());
  const auto add = [&made](std::span<const PlainKeys> keys, KeyRule::Role role) {
    for (const PlainKeys& of_table : keys) {
      for (const std::string_view key : words_in(of_table.keys)) {
        made.push_back({.table = of_table.table, .key = key, .role = role});
      }
    }
  };
  add(stated, KeyRule::Role::stated);
  add(idle, KeyRule::Role::idle);
  return made;
}

const KeyRule* RuleTable::find(std::string_view path) const {
  const KeyRule* found = nullptr;
  std::size_t most = 0;
  for (const KeyRule& rule : rules_) {
    const std::size_t letters = letters_matched(rule, path);
    if (letters <= most) continue;
    most = letters;
    found = &rule;
  }
  return found;
}

}  // namespace hdpsim
