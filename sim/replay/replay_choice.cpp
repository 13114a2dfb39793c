#include "sim/replay/replay_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/study/lengths.h"
#include "sim/study/study.h"

namespace hdpsim {
namespace {

StudyPoint& point_of(Study& study, std::int64_t number) {
  if (number < 0 && study.points.size() > 1) {
    throw InputError(fmt::format("a replay has one point, the study has {}", study.points.size()),
                     "choose one with --point, or leave the sweep out with --set sweep={}");
  }
  const StudyPoint& chosen = chosen_point(study, std::max<std::int64_t>(0, number));
  return study.points[static_cast<std::size_t>(&chosen - study.points.data())];
}

template <class Item>
void keep_only(std::vector<Item>& items, const std::vector<std::size_t>& kept) {
  std::vector<Item> result;
  result.reserve(kept.size());
  for (const std::size_t index : kept) result.push_back(std::move(items[index]));
  items = std::move(result);
}

// Keeps the order of the study.
void choose_plans(Study& study, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::set<std::size_t> chosen;
  for (const std::string& name : names) chosen.insert(chosen_plan(study, name));
  keep_plans(study, {chosen.begin(), chosen.end()});
}

std::int64_t steps_of(const StudyPoint& point, const ReplayChoice& choice) {
  if (choice.steps > 0) return choice.steps;
  if (choice.trace.empty()) return point.spec.steps;
  return point.batches->lap().value_or(point.spec.steps);
}

}  // namespace

std::vector<std::string> overrides_of(const ReplayChoice& choice, const std::vector<std::string>& overrides) {
  return with_lengths(choice.trace, choice.column, overrides);
}

void keep_plans(Study& study, const std::vector<std::size_t>& kept) {
  keep_only(study.plans, kept);
  keep_only(study.resolved.find("plans")->items, kept);
  for (StudyPoint& point : study.points) keep_only(point.planners, kept);
  const auto is_baseline = [&](const StudyPlan& plan) { return plan.name == study.compare_to; };
  if (std::none_of(study.plans.begin(), study.plans.end(), is_baseline)) {
    study.compare_to.reset();
    std::erase_if(study.resolved.entries, [](const Value::Entry& entry) { return entry.key == "compare_to"; });
  }
}

const StudyPoint& choose(Study& study, const ReplayChoice& choice) {
  choose_plans(study, choice.plans);
  StudyPoint& point = point_of(study, choice.point);
  point.spec.steps = steps_of(point, choice);
  study.resolved.find("data")->set("steps", Value::scalar(std::to_string(point.spec.steps)));
  return point;
}

}  // namespace hdpsim
