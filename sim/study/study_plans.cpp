#include "sim/study/study_plans.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "sim/document/values.h"
#include "sim/study/plan_files.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_plans = 1000;

std::string name_in(const Value& entry) {
  if (names_plan_files(entry)) return name_of_plan_files(entry);
  return entry.is_map() && entry.entries.size() == 1 ? entry.entries.front().key : entry.text;
}

StudyPlan read_plan_entry(std::string name, const Value& entry, Diagnostics& diagnostics) {
  if (!names_plan_files(entry)) return {std::move(name), entry, read_policy(entry, diagnostics), nullptr};
  StudyPlan plan{std::move(name), entry, std::nullopt, read_plan_files(entry, diagnostics)};
  if (plan.given != nullptr) plan.policy = given_policy(plan.name, plan.given, entry);
  return plan;
}

}  // namespace

std::string StudyPlan::identity() const {
  return given == nullptr ? to_yaml(entry) : fmt::format("files: {:016x}\n", given->fingerprint);
}

Value with_option(const Value& plan, std::string_view option, Value value) {
  Value entry = plan.is_map() ? plan : Value::map(plan.position);
  if (!plan.is_map()) entry.set(plan.text, Value::map(plan.position));
  Value& options = entry.entries.front().value;
  if (!options.is_map()) options = Value::map(plan.position);
  options.set(option, std::move(value));
  return entry;
}

std::vector<StudyPlan> read_study_plans(const Value& plans, Diagnostics& diagnostics) {
  if (!plans.is_sequence() || plans.items.empty()) {
    diagnostics.error(plans.position, "the plans must be a list that is not empty",
                      "write plans: [static, hdp-balance]");
    return {};
  }
  if (plans.items.size() > most_plans) {
    diagnostics.error(plans.position, fmt::format("{} plans are more than {}", plans.items.size(), most_plans),
                      "several studies share them");
    return {};
  }
  std::map<std::string, int> uses;
  for (const Value& entry : plans.items) ++uses[name_in(entry)];
  std::vector<StudyPlan> read;
  std::set<std::string> names;
  for (const Value& entry : plans.items) {
    std::string name = name_in(entry);
    const bool of_files = names_plan_files(entry);
    if (uses[name] > 1 && !of_files && entry.is_map() && !entry.entries.empty())
      name = fmt::format("{} {}", name, line_of(entry.entries.front().value));
    if (!names.insert(name).second) {
      diagnostics.error(entry.position, fmt::format("the plan '{}' is stated a second time here", name),
                        of_files ? "call it otherwise: {file: plans/*.json, name: mine}" : "remove one of them");
    }
    read.push_back(read_plan_entry(std::move(name), entry, diagnostics));
  }
  return read;
}

}  // namespace hdpsim
