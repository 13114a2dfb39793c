#include "sim/import/impl/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace hdpsim {
namespace {

// The same letters, small or not: Python's False is YAML's false.
bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Whether a key has another value than the usual one.
bool says_more(const Value& value, std::string_view usual) {
  if (value.is_scalar()) return !value.text.empty() && value.text != "null" && !is_same_word(value.text, usual);
  return std::any_of(value.items.begin(), value.items.end(),
                     [&](const Value& item) { return !is_same_word(item.text, usual); });
}

bool says_nothing(const Value& value) {
  return value.is_null() ||
         (value.is_scalar() && !value.quoted && (value.text.empty() || value.text == "None" || value.text == "null"));
}

// true and false as Python, YAML 1.1 and shell scripts write them.
constexpr std::array<std::string_view, 5> words_for_on = {"true", "True", "yes", "on", "1"};
constexpr std::array<std::string_view, 5> words_for_off = {"false", "False", "no", "off", "0"};

}  // namespace

const Value* ConfigKeys::at(std::string_view path) const {
  const Value* value = &root_;
  for (std::size_t begin = 0; value != nullptr && begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    value = value->find(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return value == nullptr || says_nothing(*value) ? nullptr : value;
}

const Value* ConfigKeys::at(std::initializer_list<std::string_view> paths) const {
  for (const std::string_view path : paths) {
    if (const Value* value = at(path)) return value;
  }
  return nullptr;
}

std::int64_t ConfigKeys::number(const Value* value, std::string_view name, Range range, std::int64_t otherwise) const {
  return value == nullptr ? otherwise : count(*value, name, range).value_or(otherwise);
}

std::optional<std::int64_t> ConfigKeys::count(const Value& value, std::string_view name, Range range) const {
  if (value.text.starts_with('$')) {
    const bool is_variable = value.text.find_first_of("({ ") == std::string::npos;
    diagnostics_.error(
        value.position, fmt::format("'{}': this file does not state {}", name, value.text),
        is_variable ? fmt::format("--var {}=VALUE gives it a value", value.text.substr(1)) : std::string());
    return std::nullopt;
  }
  Value digits = value;
  std::erase(digits.text, '_');
  return read_in<std::int64_t>(digits, fmt::format("'{}'", name), range, diagnostics_);
}

std::string ConfigKeys::word(const Value* value, std::string_view otherwise) const {
  if (value == nullptr) return std::string(otherwise);
  return read<std::string>(*value, diagnostics_).value_or(std::string(otherwise));
}

bool ConfigKeys::truth(const Value* value, bool otherwise) const {
  if (value == nullptr) return otherwise;
  const auto is_one = [&](const auto& words) {
    return std::find(words.begin(), words.end(), value->text) != words.end();
  };
  if (value->is_scalar() && is_one(words_for_on)) return true;
  if (value->is_scalar() && is_one(words_for_off)) return false;
  return read<bool>(*value, diagnostics_).value_or(otherwise);
}

Position ConfigKeys::position(const Value* value) const {
  return value == nullptr ? Position{file_, 0, 0} : value->position;
}

void ConfigKeys::unmodelled(std::string_view name, const Value* value, std::string_view follows,
                            const LikelyEffect& effect) {
  notes_.push_back({ImportNote::Kind::unmodelled, value == nullptr ? Position{} : value->position,
                    difference_text(name, follows, effect)});
}

void ConfigKeys::assume(std::string text, const Value* value) {
  notes_.push_back({ImportNote::Kind::assumed, value == nullptr ? Position{} : value->position, std::move(text)});
}

void ConfigKeys::note_rest() {
  note_map("", root_);
}

void ConfigKeys::note_map(const std::string& path, const Value& map) {
  for (const Value::Entry& entry : map.entries) {
    const std::string name = path.empty() ? entry.key : fmt::format("{}.{}", path, entry.key);
    if (entry.value.is_map() && rule_of_(name) == nullptr) {
      note_map(name, entry.value);
    } else {
      note_key(name, entry);
    }
  }
}

void ConfigKeys::note_key(const std::string& path, const Value::Entry& entry) {
  const KeyRule* rule = rule_of_(path);
  if (rule == nullptr) return note_unknown(path, entry);
  if (rule->role == KeyRule::Role::idle) {
    notes_.push_back({ImportNote::Kind::ignored, entry.position, path});
  } else if (rule->role == KeyRule::Role::unmodelled && says_more(entry.value, rule->usual)) {
    const std::string text = entry.value.is_scalar() ? fmt::format("{} = {}", path, entry.value.text) : path;
    unmodelled(text, &entry.value, rule->follows, rule->effect);
  }
}

void ConfigKeys::note_unknown(const std::string& path, const Value::Entry& entry) {
  const NameHint* hint = hint_of_name(path);
  notes_.push_back({ImportNote::Kind::unknown, entry.position,
                    hint == nullptr ? path : difference_text(path, hint->follows, hint->effect)});
}

}  // namespace hdpsim
