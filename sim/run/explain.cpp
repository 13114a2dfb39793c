#include "sim/run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>

#include "sim/analysis/memory_verdict.h"
#include "sim/engine/step_ending.h"
#include "sim/plan/plan_time.h"
#include "sim/run/ordered_work.h"
#include "sim/run/refusals.h"
#include "sim/run/step.h"
#include "sim/study/study.h"

namespace hdpsim {
namespace {

constexpr std::size_t wide_beam = 2;  // of advice, where trials are cheap
constexpr double least_gain = 0.001;  // share of the step; a change that gains less does not help

FamilyFactors twice_as_fast(std::initializer_list<CostFamily> families) {
  FamilyFactors factors;
  for (const CostFamily family : families) factors[family] = 0.5;
  return factors;
}

void double_network(ClusterSpec& cluster) {
  const auto twice = [](Bandwidth& rate) { rate = rate * 2; };
  twice(cluster.nic);
  for (NodeKind& kind : cluster.kinds) twice(kind.nic);
  if (auto* torus = std::get_if<TorusSpec>(&cluster.fabric)) twice(torus->bandwidth);
  if (auto* dragonfly = std::get_if<DragonflySpec>(&cluster.fabric)) {
    twice(dragonfly->local);
    twice(dragonfly->global);
  }
  if (auto* graph = std::get_if<SwitchGraphSpec>(&cluster.fabric)) {
    for (SwitchGraphSpec::Cable& cable : graph->cables) twice(cable.bandwidth);
  }
}

void double_nvlink(ClusterSpec& cluster) {
  cluster.nvlink = cluster.nvlink * 2;
  for (NodeKind& kind : cluster.kinds) kind.nvlink = kind.nvlink * 2;
}

bool has_slow_devices(const ClusterSpec& cluster) {
  return std::any_of(cluster.speed.begin(), cluster.speed.end(), [](const auto& entry) { return entry.second < 1; }) ||
         std::any_of(cluster.kinds.begin(), cluster.kinds.end(), [](const NodeKind& kind) { return kind.speed < 1; });
}

void heal_devices(ClusterSpec& cluster) {
  for (auto& [device, speed] : cluster.speed) speed = std::max(speed, 1.0);
  for (NodeKind& kind : cluster.kinds) kind.speed = std::max(kind.speed, 1.0);
}

/// Simulates one plan in several worlds.
class WhatIfs {
 public:
  WhatIfs(const StudyPoint& point, const Program& program, Explanation& told)
      : point_(point), conditions_(conditions_of(point)), program_(program), told_(told) {}

  void try_all() {
    const ClusterSpec& cluster = point_.spec.cluster;
    try_kernels("attention twice as fast", {CostFamily::attention_forward, CostFamily::attention_backward});
    try_kernels("all other kernels twice as fast", {CostFamily::gemm, CostFamily::memory_bound});
    if (cluster.nodes() > 1) try_cluster("the network between nodes twice as fast", double_network);
    if (cluster.has_nvlink()) try_cluster("NVLink twice as fast", double_nvlink);
    if (copies()) try_copies();
    const bool wait_for_slowest = point_.spec.profile->factors.any();
    if (has_slow_devices(cluster) || conditions_.devices.any() || wait_for_slowest) try_nominal_devices();
    if (!cluster.degraded.empty()) try_cluster("all links of full rate", [](auto& c) { c.degraded.clear(); });
    try_without_overheads();
    keep("nobody waits for others", told_.busy.mean, true);
    std::stable_sort(told_.changes.begin(), told_.changes.end(),
                     [](const WhatIf& a, const WhatIf& b) { return a.step_time < b.step_time; });
  }

 private:
  void try_kernels(const std::string& change, std::initializer_list<CostFamily> families) {
    const std::unique_ptr<World> world = point_.make_world(twice_as_fast(families));
    keep(change, simulate_plan(program_, *world, conditions_).step_time);
  }

  void try_copies() {
    const std::unique_ptr<World> world = point_.make_world();
    Machine& machine = world->machine();
    machine.d2h = machine.d2h * 2;
    machine.h2d = machine.h2d * 2;
    keep("copies to and from the host twice as fast", simulate_plan(program_, *world, conditions_).step_time);
  }

  void try_without_overheads() {
    const std::unique_ptr<World> world = point_.make_world();
    Machine& machine = world->machine();
    if (machine.step_overhead + machine.micro_batch_overhead == Duration{}) return;
    machine.step_overhead = Duration{};
    machine.micro_batch_overhead = Duration{};
    keep("no overheads of the framework", simulate_plan(program_, *world, conditions_).step_time);
  }

  // Without noise and faults, too.
  void try_nominal_devices() {
    ClusterSpec cluster = point_.spec.cluster;
    heal_devices(cluster);
    DeviceProfile profile = *point_.spec.profile;
    profile.factors = {};
    const DeviceConditions steady;
    keep("all devices of nominal speed",
         simulate_plan(program_, *point_.make_world(cluster, profile), conditions_.with(steady)).step_time);
  }

  void try_cluster(const std::string& change, const std::function<void(ClusterSpec&)>& improve) {
    ClusterSpec cluster = point_.spec.cluster;
    improve(cluster);
    keep(change, simulate_plan(program_, *point_.make_world(cluster), conditions_).step_time);
  }

  void keep(const std::string& change, Duration time, bool is_bound = false) {
    if (time < told_.step_time.scaled(1 - least_gain)) told_.changes.push_back({change, time, is_bound});
  }

  [[nodiscard]] bool copies() const {
    const std::vector<MicroBatch>& all = program_.plan().micro_batches;
    return std::any_of(all.begin(), all.end(), [](const MicroBatch& micro_batch) { return micro_batch.offloads(); });
  }

  const StudyPoint& point_;
  StepConditions conditions_;
  const Program& program_;
  Explanation& told_;
};

}  // namespace

Explanation explain(const StudyPoint& point, std::size_t plan, std::int64_t step) {
  Batch batch = point.batches_of(plan).step(step);
  Plan made = make_plan(point, plan, step, batch);
  const PointStep planned{point, std::move(batch), std::move(made)};
  const Program program(planned.plan, point.lowered);
  const std::unique_ptr<World> world = point.make_world();
  Explanation told = explanation_of(program, simulate_plan(program, *world, conditions_of(point)), world->machine());
  told.distance = distance_to_bound({.bound = planned.bound(world->machine().speed),
                                     .reason = planned.bounds().reason(),
                                     .busy = plan_time(planned.plan, point.work).busy,
                                     .estimate = point.estimate(planned.plan),
                                     .ending = least_ending(program, world->machine())},
                                    told.step_time);
  WhatIfs(point, program, told).try_all();
  return told;
}

namespace {

Explanation refused_explanation(const Run& refused) {
  Explanation told;
  told.plan = refused.info.plan;
  told.step = refused.result.refusal->step;
  told.refusal = refusal_text(refused);
  return told;
}

}  // namespace

std::vector<std::size_t> chosen_plans(const Study& study, const ExplainChoice& choice) {
  const std::int64_t steps = chosen_point(study, choice.point).spec.steps;
  if (choice.step >= steps) {
    throw InputError(fmt::format("there is no step {}: the runs have {}, counted from 0", choice.step, steps));
  }
  if (!choice.plan.empty()) return {chosen_plan(study, choice.plan)};
  std::vector<std::size_t> all(study.plans.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::int64_t chosen_step(const Study& study, const std::vector<Run>& runs, const ExplainChoice& choice) {
  const std::size_t first = static_cast<std::size_t>(choice.point) * study.plans.size();
  std::vector<const Run*> chosen;
  for (const std::size_t plan : chosen_plans(study, choice)) chosen.push_back(&runs.at(first + plan));
  require_one_that_ran(chosen);
  if (choice.step >= 0) return choice.step;
  return typical_step(**std::find_if(chosen.begin(), chosen.end(), [](const Run* run) { return !run->is_refused(); }));
}

Explanation explain_run(const Study& study, const std::vector<Run>& runs, std::size_t run, std::int64_t step) {
  if (runs.at(run).is_refused()) return refused_explanation(runs[run]);
  const std::size_t plan = run % study.plans.size();
  Explanation told = explain(study.points.at(run / study.plans.size()), plan, step);
  told.plan = study.plans[plan].name;
  return told;
}

std::vector<Explanation> explain(const Study& study, const std::vector<Run>& runs, const ExplainChoice& choice,
                                 const AdviceOptions& options) {
  const auto first = static_cast<std::size_t>(choice.point) * study.plans.size();
  const std::int64_t step = chosen_step(study, runs, choice);
  const std::vector<std::size_t> plans = chosen_plans(study, choice);
  const auto explained_plan = [&](std::int64_t number) {
    return explain_run(study, runs, first + plans[static_cast<std::size_t>(number)], step);
  };
  std::vector<Explanation> all;
  (void)run_in_order(
      {.end = std::ssize(plans), .jobs = options.jobs, .stop = options.stop}, [&] { return explained_plan; },
      [&](std::int64_t, Explanation told) { all.push_back(std::move(told)); });
  AdviceOptions wide = options;
  wide.beam = is_cheap_to_advise(study, {first}) ? wide_beam : 1;
  for (std::size_t plan = 0; plan < all.size(); ++plan) {
    all[plan].advice = advice_for(study, runs, first + plans[plan], step, wide);
  }
  return options.stop() ? std::vector<Explanation>{} : all;
}

std::int64_t typical_step(const Run& run) {
  const double median = run.metrics.step_time_s.p50;
  const auto distance = [&](const StepResult& step) { return std::abs(seconds_of(step.time) - median); };
  const auto nearest =
      std::min_element(run.result.steps.begin(), run.result.steps.end(),
                       [&](const StepResult& a, const StepResult& b) { return distance(a) < distance(b); });
  return nearest == run.result.steps.end() ? 0 : nearest->step;
}

}  // namespace hdpsim
