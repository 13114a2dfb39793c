#include "sim/study/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/plan/policy.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

// A value with the positions that it has in line `number` of all assignments, after `skipped` characters.
Value parse_at(const std::string& text, std::size_t number, std::size_t skipped, Diagnostics& diagnostics) {
  return parse_document(override_source, std::string(number, '\n') + std::string(skipped, ' ') + text, diagnostics);
}

constexpr std::string_view sweep_prefix = "sweep.";
constexpr std::string_view plans_prefix = "plans.";

// Takes `path` and what is below it out of the sweep, whose values would replace the one that is set.
void end_sweep_of(Value& root, const std::string& path) {
  Value* sweep = root.find("sweep");
  if (sweep == nullptr || !sweep->is_map()) return;
  std::erase_if(sweep->entries, [&](const Value::Entry& swept) { return is_at_or_below(swept.key, path); });
}

bool names_policy(const Value& entry, std::string_view policy) {
  return entry.is_map() ? entry.entries.size() == 1 && entry.entries.front().key == policy : entry.text == policy;
}

// `plans.hdp-balance.offload`, as the key is called, leads to the only plan of that policy, which may be a bare word:
// the path by its place in the list.
std::string path_of_plan(Value& root, const std::string& path) {
  Value* plans = path.starts_with(plans_prefix) ? root.find("plans") : nullptr;
  const auto end = path.find('.', plans_prefix.size());
  if (plans == nullptr || !plans->is_sequence() || end == std::string::npos) return path;
  const std::string policy = path.substr(plans_prefix.size(), end - plans_prefix.size());
  const auto is_it = [&](const Value& entry) { return names_policy(entry, policy); };
  const auto plan = std::find_if(plans->items.begin(), plans->items.end(), is_it);
  if (std::count_if(plans->items.begin(), plans->items.end(), is_it) != 1) return path;
  if (!plan->is_map()) {
    Value with_options = Value::map(plan->position);
    with_options.set(policy, Value::map(plan->position));
    *plan = std::move(with_options);
  }
  return fmt::format("{}{}.{}", plans_prefix, plan - plans->items.begin(), path.substr(plans_prefix.size()));
}

std::vector<MovedKey> all_moved_keys() {
  std::vector<MovedKey> all;
  for (const StudyKey& each : all_study_keys()) {
    const std::string_view from = each.key->notes.formerly;
    if (!from.empty()) all.push_back({std::string(from), each.path});
  }
  return all;
}

const std::vector<MovedKey>& moved_keys() {
  static const std::vector<MovedKey> all = all_moved_keys();
  return all;
}

std::string_view moved_section(std::string_view path) {
  return path.substr(0, path.find('.'));
}

std::string_view moved_name(std::string_view path) {
  return path.substr(path.find('.') + 1);
}

// Takes a key out of a section; empty if it is not there.
std::optional<Value> taken(Value& section, std::string_view name) {
  const Value* found = section.find(name);
  if (found == nullptr) return std::nullopt;
  Value value = *found;
  std::erase_if(section.entries, [&](const Value::Entry& entry) { return entry.key == name; });
  return value;
}

void put_assigned(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics) {
  if (!path.starts_with(sweep_prefix)) {
    if (!put_at(root, path_of_plan(root, path), value, diagnostics)) return;
    end_sweep_of(root, present_path(path));
    // What is assigned next may end a sweep of this one.
    if (path != "sweep") return;
    for (Value::Entry& entry : root.find("sweep")->entries) entry.key = present_path(entry.key);
    return;
  }
  Value* sweep = root.find("sweep");
  if (sweep == nullptr) sweep = &root.set("sweep", Value::map(value.position));
  if (sweep->is_null()) *sweep = Value::map(value.position);
  if (!sweep->is_map()) {
    diagnostics.error(value.position, "the sweep is a list of points and has no paths", "replace it: sweep={}");
    return;
  }
  sweep->set(present_path(path.substr(sweep_prefix.size())), value);
}

/// Moves keys from where older studies state them, and remembers which.
class KeyMover {
 public:
  explicit KeyMover(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void move_study(Value& study) {
    move_sections(study);
    if (Value* background = study.find("background")) move_jobs(*background);
    if (Value* sweep = study.find("sweep")) {
      move_paths(*sweep);
      for (Value& point : sweep->items) {
        if (Value* set = point.find("set")) move_paths(*set);
      }
    }
    Value* tune = study.find("tune");
    if (Value* space = tune == nullptr ? nullptr : tune->find("space")) move_paths(*space);
  }

  [[nodiscard]] std::vector<MovedKey> moved() && { return std::move(moved_); }

 private:
  void move_sections(Value& study) {
    for (const MovedKey& key : moved_keys()) {
      Value* section = study.find(moved_section(key.from));
      const std::optional<Value> value = section == nullptr ? std::nullopt : taken(*section, moved_name(key.from));
      if (!value) continue;
      remember(key);
      Value* present = study.find(moved_section(key.to));
      if (present == nullptr) present = &study.set(moved_section(key.to), Value::map(value->position));
      if (present->is_null()) *present = Value::map(present->position);
      if (const Value* other = present->find(moved_name(key.to))) {
        report_both(key, *value, *other);
      } else if (present->is_map()) {
        present->set(moved_name(key.to), *value);
      }
    }
  }

  void move_jobs(Value& background) {
    for (Value& job : background.items) {
      if (job.is_map()) move_sections(job);
      if (job.is_sequence()) move_jobs(job);  // values of a sweep
    }
  }

  // Of a map by paths.
  void move_paths(Value& values) {
    if (!values.is_map()) return;
    for (std::size_t i = 0; i < values.entries.size(); ++i) {
      Value::Entry& entry = values.entries[i];
      if (entry.key == "background") move_jobs(entry.value);
      for (const MovedKey& key : moved_keys()) {
        if (!is_at_or_below(entry.key, key.from)) continue;
        const std::string present = present_path(entry.key);
        if (const Value* other = values.find(present)) report_both(key, entry.value, *other);
        entry.key = present;
        remember(key);
        break;
      }
    }
  }

  void report_both(const MovedKey& key, const Value& former, const Value& present) {
    const Position& at = present.position;
    diagnostics_.error(former.position,
                       fmt::format("'{}' is what '{}' was called, which is stated at {}:{}:{}", key.from, key.to,
                                   at.file, at.line, at.column),
                       fmt::format("leave '{}' out", key.from));
  }

  void remember(const MovedKey& key) {
    if (std::find(moved_.begin(), moved_.end(), key) == moved_.end()) moved_.push_back(key);
  }

  Diagnostics& diagnostics_;
  std::vector<MovedKey> moved_;
};

}  // namespace

std::string present_path(const std::string& path) {
  for (const MovedKey& key : moved_keys()) {
    if (is_at_or_below(path, key.from)) return key.to + path.substr(key.from.size());
  }
  return path;
}

bool put_at(Value& study, const std::string& path, const Value& value, Diagnostics& diagnostics) {
  const std::string present = present_path(path);
  Value rest = value;
  for (const MovedKey& key : moved_keys()) {
    if (moved_section(key.from) != present) continue;
    if (const auto moved = taken(rest, moved_name(key.from))) (void)put_at(study, key.to, *moved, diagnostics);
  }
  return set_path(study, present, rest, diagnostics);
}

std::vector<MovedKey> move_keys(Value& study, Diagnostics& diagnostics) {
  KeyMover mover(diagnostics);
  if (study.is_map()) mover.move_study(study);
  return std::move(mover).moved();
}

bool is_at_or_below(std::string_view path, std::string_view outer) {
  return path.starts_with(outer) && (path.size() == outer.size() || path[outer.size()] == '.');
}

std::string override_text(const std::vector<std::string>& assignments) {
  return fmt::format("{}\n", joined(assignments, "\n"));
}

void apply_overrides(Value& root, const std::vector<std::string>& assignments, Diagnostics& diagnostics) {
  // Each is parsed as a line of the text of all of them, which takes time in proportion to the lines before it.
  constexpr std::size_t most_assignments = 1000;
  if (assignments.size() > most_assignments) {
    diagnostics.error({}, fmt::format("more than {} values are set one by one", most_assignments),
                      "write them into the study");
    return;
  }
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const std::string& assignment = assignments[i];
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.error({override_source, static_cast<int>(i) + 1, 1}, fmt::format("'{}' sets nothing", assignment),
                        "write data.context=1Mi");
      continue;
    }
    const Value value = parse_at(assignment.substr(equals + 1), i, equals + 1, diagnostics);
    put_assigned(root, assignment.substr(0, equals), value, diagnostics);
  }
  diagnostics.add_source(override_source, override_text(assignments));
}

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
        Value nothing = Value::map(position_);
        Value* map = study_.find(section.text.name);
        if (map == nullptr || map->is_null()) {
          map = key.notes.off.empty() ? &nothing : &study_.set(section.text.name, Value::map(position_));
        }
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

namespace {

// Whether a key of a map is on: what a resolved study leaves out has its default.
bool is_on(const Value* map, const KeyText& key) {
  const Value* value = map == nullptr ? nullptr : map->find(key.name);
  if (key.notes.off.empty()) return value != nullptr && !value->is_null();
  return value == nullptr ? key.fallback != key.notes.off : line_of(*value) != key.notes.off;
}

bool is_on_in_plans(const Value& study, std::string_view policy, const KeyText& option) {
  const Value* plans = study.find("plans");
  if (plans == nullptr) return false;
  return std::any_of(plans->items.begin(), plans->items.end(), [&](const Value& entry) {
    const bool is_of_policy = entry.is_scalar() ? entry.text == policy : entry.find(policy) != nullptr;
    return is_of_policy && is_on(entry.find(policy), option);
  });
}

}  // namespace

bool has_mechanism(const Value& resolved, std::string_view name) {
  for (const auto& [policy, options] : policy_options()) {
    for (const KeyText& option : options) {
      if (option.notes.mechanism == name && is_on_in_plans(resolved, policy, option)) return true;
    }
  }
  for (const StudySection& section : study_sections()) {
    if (section.text.notes.mechanism == name && is_on(&resolved, section.text)) return true;
    for (const KeyText& key : section.text.shape.keys) {
      if (key.notes.mechanism == name && is_on(resolved.find(section.text.name), key)) return true;
    }
  }
  return false;
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
