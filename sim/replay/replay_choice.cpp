#include "sim/replay/replay_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/plan/plan_check.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"
#include "sim/study/lengths.h"
#include "sim/study/problems.h"
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

// What a plan says to a step; empty if it has one that its ranks can hold.
std::optional<Refusal> refusal_of(const Study& study, const StudyPoint& point, std::size_t plan, std::int64_t step) {
  try {
    const Plan made = point.planners[plan]->plan(point.batches_of(plan).step(step), step);
    const std::string excess = capacity_excess(tokens_held(made), point.spec.capacity);
    if (!excess.empty()) return Refusal{step, fmt::format("{} leaves {}", study.plans[plan].name, excess), ""};
  } catch (const InputError& said) {
    return PlanRefused(said, step).refusal();
  } catch (const QuantityOverflow&) {
    // The step itself will say which quantity it is.
  }
  return std::nullopt;
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

std::string refusal_text(const RefusedPlan& refused) {
  const Position& place = refused.place;
  const std::string where =
      place.line > 0 ? fmt::format("{}:{}:{}: ", place.file, place.line, place.column) : std::string{};
  const Refusal& refusal = refused.refusal;
  const std::string help = refusal.help.empty() ? "" : "; " + refusal.help;
  return fmt::format("{} is refused: {}{} (step {}){}", refused.plan, where, refusal.message, refusal.step, help);
}

std::optional<std::vector<RefusedPlan>> leave_out_refused(Study& study, const StudyPoint& point, std::size_t jobs,
                                                          const std::function<bool()>& stop) {
  std::vector<RefusedPlan> refused;
  std::vector<std::size_t> kept;
  for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
    std::optional<Refusal> first;
    if (point.planners[plan]->may_refuse()) {
      const auto make_worker = [&] { return [&](std::int64_t step) { return refusal_of(study, point, plan, step); }; };
      const auto take = [&](std::int64_t, std::optional<Refusal>&& refusal) {
        if (!first) first = std::move(refusal);
      };
      if (!run_in_order({0, point.spec.steps, jobs, stop}, make_worker, take)) return std::nullopt;
    }
    if (first) {
      const auto number = static_cast<std::size_t>(&point - study.points.data());
      refused.push_back({study.plans[plan].name, study.run_info(number, plan).place, *first});
    } else {
      kept.push_back(plan);
    }
  }
  if (kept.empty()) {
    Diagnostics said;
    for (const RefusedPlan& each : refused) said.error(each.place, each.refusal.message, each.refusal.help);
    Problems(said).throw_if_any({});
  }
  if (!refused.empty()) keep_plans(study, kept);
  return refused;
}

}  // namespace hdpsim
