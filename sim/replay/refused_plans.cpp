#include "sim/replay/refused_plans.h"

#include <fmt/format.h>

#include <utility>

#include "sim/plan/plan_check.h"
#include "sim/replay/replay_choice.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"
#include "sim/study/problems.h"

namespace hdpsim {
namespace {

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
