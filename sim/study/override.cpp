#include "sim/study/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

// The child for one step of a path, created at `position` if a map lacks it; nullptr if no entry can be created.
Value* step_into(Value& at, std::string_view step, const Position& position) {
  if (at.is_sequence()) {
    const Parsed<std::int64_t> index = parse_count(step);
    const bool exists = index.value && *index.value >= 0 && *index.value < static_cast<std::int64_t>(at.items.size());
    return exists ? &at.items[static_cast<std::size_t>(*index.value)] : nullptr;
  }
  if (at.is_null()) at = Value::map(position);
  if (!at.is_map()) return nullptr;
  if (Value* existing = at.find(step)) return existing;
  Value nothing;
  nothing.position = position;
  return &at.set(step, nothing);
}

// Creates missing entries with a position, because set_path() would create them without. New items of lists are left to
// set_path().
void prepare_way(Value& root, std::string_view path, const Position& position) {
  Value* at = &root;
  while (!path.empty() && at != nullptr) {
    const auto dot = path.find('.');
    at = step_into(*at, path.substr(0, dot), position);
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
}

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

void put_assigned(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics) {
  if (!path.starts_with(sweep_prefix)) {
    if (put_at(root, path_of_plan(root, path), value, diagnostics)) end_sweep_of(root, path);
    return;
  }
  Value* sweep = root.find("sweep");
  if (sweep == nullptr) sweep = &root.set("sweep", Value::map(value.position));
  if (sweep->is_null()) *sweep = Value::map(value.position);
  if (!sweep->is_map()) {
    diagnostics.error(value.position, "the sweep is a list of points and has no paths", "replace it: sweep={}");
    return;
  }
  sweep->set(path.substr(sweep_prefix.size()), value);
}

}  // namespace

bool put_at(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics) {
  if (!is_within_depth(path, value.position, diagnostics)) return false;
  prepare_way(root, path, value.position);
  return set_path(root, path, value, value.position, diagnostics);
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

}  // namespace hdpsim
