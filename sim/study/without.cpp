#include "sim/study/without.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/text.h"
#include "sim/plan/policy.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

/// Turns mechanisms off in a study, one after the other; new values get the position of the option.
class Removal {
 public:
  Removal(Value& study, Position position) : study_(study), position_(std::move(position)) {}

  void turn_off(std::string_view mechanism) {
    for (const auto& [policy, options] : policy_options()) {
      for (const KeyText& option : options) {
        if (option.notes.mechanism == mechanism) set_option(policy, option.name, option.notes.off);
      }
    }
    for (const StudySection& section : study_sections()) {
      if (section.text.notes.mechanism == mechanism) turn_off(study_, section.text, section.text.name);
      for (const KeyText& key : section.text.shape.keys) {
        if (key.notes.mechanism != mechanism) continue;
        Value* map = study_.find(section.text.name);
        if (map == nullptr) map = &study_.set(section.text.name, Value::map(position_));
        if (map->is_null()) *map = Value::map(position_);
        turn_off(*map, key, fmt::format("{}.{}", section.text.name, key.name));
      }
    }
  }

 private:
  [[nodiscard]] Value scalar(std::string_view text) const { return Value::scalar(std::string(text), position_); }

  // Sets an option in every plan of this policy.
  void set_option(std::string_view policy, std::string_view option, std::string_view value) {
    Value* plans = study_.find("plans");
    if (plans == nullptr) return;
    for (Value& entry : plans->items) {
      if (entry.is_scalar() && entry.text == policy) {
        Value with_options = Value::map(entry.position);
        with_options.set(policy, Value::map(entry.position));
        entry = std::move(with_options);
      }
      Value* options = entry.find(policy);
      if (options == nullptr) continue;
      if (options->is_null()) *options = Value::map(entry.position);
      if (options->is_map()) options->set(option, scalar(value));
    }
  }

  // Sets the key to its value for off, or removes it if it has none. Removes it from the sweep too, which would set it
  // again.
  void turn_off(Value& map, const KeyText& key, const std::string& path) {
    const auto is_it = [&](const Value::Entry& entry) { return entry.key == key.name; };
    const auto is_below = [&](const Value::Entry& entry) {
      return entry.key == path || entry.key.starts_with(path + '.');
    };
    if (key.notes.off.empty()) {
      std::erase_if(map.entries, is_it);
    } else if (map.is_map()) {
      map.set(key.name, scalar(key.notes.off));
    }
    Value* sweep = study_.find("sweep");
    if (sweep == nullptr) return;
    std::erase_if(sweep->entries, is_below);
    for (Value& point : sweep->items) {
      if (Value* set = point.find("set")) std::erase_if(set->entries, is_below);
    }
  }

  Value& study_;
  Position position_;
};

}  // namespace

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  const auto add = [&](const KeyText& key) {
    const std::string name(key.notes.mechanism);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const auto& [policy, options] : policy_options()) std::for_each(options.begin(), options.end(), add);
  for (const StudySection& section : study_sections()) {
    add(section.text);
    std::for_each(section.text.shape.keys.begin(), section.text.shape.keys.end(), add);
  }
  return names;
}

void apply_without(Value& study, const std::vector<std::string>& names, Diagnostics& diagnostics) {
  const std::vector<std::string> known = mechanism_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Position position{without_source, static_cast<int>(i) + 1, 1};
    if (std::find(known.begin(), known.end(), names[i]) == known.end()) {
      diagnostics.error(position, fmt::format("there is no mechanism '{}'", names[i]), suggestion(names[i], known));
    } else {
      Removal(study, position).turn_off(names[i]);
    }
  }
  if (!names.empty()) diagnostics.add_source(without_source, fmt::format("{}\n", joined(names, "\n")));
}

}  // namespace hdpsim
