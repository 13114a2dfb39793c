#include "sim/run/step.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/text.h"
#include "sim/engine/simulator.h"
#include "sim/plan/plan_check.h"
#include "sim/program/program.h"
#include "sim/run/batch_bounds.h"
#include "sim/study/problems.h"

namespace hdpsim {
namespace {

/// Processor seconds of this thread since construction or the last lap; other processes on the machine affect it
/// little.
class Stopwatch {
 public:
  double lap() {
    const std::int64_t now = nanoseconds();
    return static_cast<double>(now - std::exchange(start_, now)) / 1e9;
  }

 private:
  static std::int64_t nanoseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  std::int64_t start_ = nanoseconds();
};

// What `work` computes of a step. Times beyond the range of the clock come from several quantities of the point
// together: an error of the study, reported at the quantity that is farthest from usual.
template <class Work>
auto of_step(const Outsize& outsize, std::int64_t step, Work work) {
  try {
    return work();
  } catch (const QuantityOverflow& overflow) {
    Diagnostics found;
    found.add(outsize.problem(fmt::format("step {}", step), overflow.what()));
    Problems(found).throw_if_any({});
    throw;
  }
}

void require_sound(const Plan& plan) {
  const std::vector<std::string> problems = check_plan(plan);
  HDPSIM_CHECK(problems.empty(), "the plan of '{}' for step {}: {}", plan.policy, plan.step, joined(problems, "; "));
}

StepResult summary(const Plan& plan, const Batch& batch, const StudyPoint& point, World& world,
                   const Timeline& timeline) {
  const double kept = kept_copies(point.spec.model, point.spec.experts.layout);
  return {.step = plan.step,
          .sequences = static_cast<std::int64_t>(batch.sequences.size()),
          .tokens = batch.tokens(),
          .micro_batches = static_cast<std::int64_t>(plan.micro_batches.size()),
          .tokens_held = tokens_held(plan),
          .model_flops = model_flops(point.spec.model, batch, kept).count(),
          .time = timeline.step_time,
          .bound = bound_beside(plan, point, batch, world.machine().speed),
          .mean = timeline.mean(),
          .busy = busy_times(timeline),
          .evidence = timeline.evidence,
          .connections = {},
          .memory = {},
          .events = timeline.events,
          .phases = {}};
}

// Who talked to whom, and what all devices held.
void add_memory(const Program& program, const DeviceRoom& room, const WorkModel& work, const Timeline& timeline,
                std::size_t memory_ranks, SimulatedStep& step) {
  const ConnectionTable connections = connections_of(program.plan(), room.communicators);
  step.result.connections = {connections.most_peers(), connections.groups()};
  PlanMemory memory = memory_of(program.pipeline(), program.options(), {&connections, room.per_connection});
  memory.place(timeline, work);
  step.result.memory = memory.use();
  for (const HdpRank rank : memory.fullest(memory_ranks)) step.memory.push_back(memory.over_time(rank, timeline, work));
}

std::int64_t largest_share(const Plan& plan) {
  std::int64_t largest = 0;
  for (const std::vector<MicroBatchId>& schedule : plan.schedule) {
    std::int64_t tokens = 0;
    for (const MicroBatchId id : schedule) tokens += plan.micro_batches[id.index()].tokens_per_rank();
    largest = std::max(largest, tokens);
  }
  return largest;
}

LoadingJob loading_job(const Mesh& mesh, std::int64_t nodes, const Plan& plan, std::int64_t tokens) {
  return {.ranks = mesh.hdp,
          .devices_per_rank = mesh.tp * mesh.pp,
          .nodes = nodes,
          .tokens = tokens,
          .largest_share = largest_share(plan)};
}

// Adds the time of loading the step's batch, and the host memory that its loaders hold all the time.
void add_loading(const LoadingSpec& loading, const LoadingJob& job, SimulatedStep& step) {
  step.result.loading = loading_stages(loading, job);
  const Bytes held = loading_memory(loading, job);
  step.result.memory.host += held;
  for (RankMemory& rank : step.memory) {
    for (MemorySample& sample : rank.samples) sample.host += held;
  }
}

// The change of the step with each family's costs, under the same plan: the difference quotient over one standard
// deviation of the family's error either way. Two simulations per family.
std::vector<Duration> slopes_of(const FamilyErrors& errors,
                                const std::function<Duration(const FamilyFactors&)>& step_time) {
  std::vector<Duration> slopes;
  for (std::size_t i = 0; i < cost_families; ++i) {
    const double change = std::min(0.5, nudge(errors[i]));
    const auto time = [&](double factor) {
      FamilyFactors factors;
      factors[static_cast<CostFamily>(i)] = factor;
      return step_time(factors);
    };
    slopes.push_back((time(1 + change) - time(1 - change)).scaled(1 / (2 * change)));
  }
  return slopes;
}

// A job beside the main one, from its own step of the same number on.
BackgroundJob training_beside(const StudyNeighbour& job, Machine& machine, std::int64_t step) {
  return {job.name, &machine, job.lowering, [&job, step](std::int64_t n) {
            Plan plan = job.plan(step + n);
            require_sound(plan);
            return plan;
          }};
}

BackgroundTraffic traffic_among(const std::string& name, const Traffic& traffic, const NodeList& nodes,
                                std::int64_t devices_per_node) {
  BackgroundTraffic among{name, messages_of(traffic)};
  for (Message& message : among.messages) {
    message.from = nodes.device(message.from.index(), devices_per_node);
    message.to = nodes.device(message.to.index(), devices_per_node);
  }
  return among;
}

// Everything that runs beside a step of the main job.
Background background_of(const StepConditions& conditions, std::int64_t step, World& world) {
  Background background;
  for (std::size_t i = 0; i < conditions.neighbours.size(); ++i) {
    background.jobs.push_back(training_beside(conditions.neighbours[i], world.neighbour(i).machine(), step));
  }
  for (const BackgroundSpec& other : conditions.background) {
    if (other.job != nullptr) continue;
    background.traffic.push_back(
        traffic_among(other.name, other.traffic, other.nodes, world.cluster().devices_per_node));
  }
  return background;
}

Plan asked_for(const Planner& planner, const Batch& batch, std::int64_t step) {
  try {
    return planner.plan(batch, step);
  } catch (const InputError& said) {
    throw PlanRefused(said, step);
  }
}

Plan planned(const Planner& planner, const Batch& batch, std::int64_t step) {
  Plan made = asked_for(planner, batch, step);
  require_sound(made);
  return made;
}

void simulate_in_closed_form(const StudyPoint& point, std::size_t plan, World& world) {
  const Batch batch = point.batches_of(plan).step(0);
  const LoweringOptions lowering = lowering_of(point.spec);
  try {
    of_step(point.outsize, 0, [&] {
      const Plan made = planned(*point.planners[plan], batch, 0);
      return simulate(Program(made, lowering), world.machine(), Grain::closed_form);
    });
  } catch (const PlanRefused&) {
    return;  // its run will say so
  }
}

}  // namespace

PlanRefused::PlanRefused(const InputError& said, std::int64_t step) : InputError(said) {
  const Diagnostic first = said.diagnostics().sorted().front();
  refusal_ = {step, first.message, first.help};
}

StepConditions conditions_of(const StudyPoint& point) {
  return {.grain = point.spec.grain,
          .devices = point.spec.conditions,
          .neighbours = point.neighbours,
          .background = point.spec.background,
          .outsize = point.outsize};
}

void require_simulable(const StudyPoint& point) {
  constexpr double usual = 50;
  if (point.outsize.times < usual) return;
  const std::unique_ptr<World> world = point.make_world();
  for (std::size_t i = 0; i < point.planners.size(); ++i) simulate_in_closed_form(point, i, *world);
}

Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch) {
  return of_step(point.outsize, step, [&] { return planned(*point.planners.at(plan), batch, step); });
}

Timeline simulate_plan(const Program& program, World& world, const StepConditions& conditions) {
  const std::int64_t step = program.plan().step;
  return of_step(conditions.outsize, step, [&] {
    world.set_time_factors(conditions.devices.any() ? time_factors(conditions.devices, world.cluster().devices, step)
                                                    : std::vector<double>{});
    return simulate(program, world.machine(), conditions.grain, background_of(conditions, step, world));
  });
}

namespace {

// The conditions of a step with one slow node more.
DeviceConditions with_slow_node(const DeviceConditions& devices, NodeId node, const ClusterSpec& cluster,
                                double slowdown) {
  DeviceConditions slower = devices;
  const auto first = static_cast<std::int64_t>(node.index()) * cluster.devices_per_node;
  slower.faults.push_back({.first_device = first,
                           .last_device = first + cluster.devices_per_node - 1,
                           .to_step = std::numeric_limits<std::int64_t>::max(),
                           .slowdown = slowdown});
  return slower;
}

// How the step changes under the same plan with what nobody knows beforehand: errors of costs, slow nodes, routes.
void add_changes(const StudyPoint& point, const Program& program, const StepConditions& conditions, StepResult& step) {
  const PointSpec& spec = point.spec;
  const UncertaintyOptions& options = *spec.uncertainty;
  const FamilyErrors errors = errors_of(options, *spec.profile, of_attention(spec.model).head_dim);
  step.slopes = slopes_of(errors, [&](const FamilyFactors& factors) {
    return simulate_plan(program, *point.make_world(factors), conditions).step_time;
  });
  for (const NodeId node : probed_nodes(options, spec.nodes, spec.cluster)) {
    const DeviceConditions devices =
        with_slow_node(conditions.devices, node, spec.cluster, options.slow_nodes.slowdown);
    const StepConditions slower{conditions.grain, devices, conditions.neighbours, conditions.background,
                                conditions.outsize};
    step.slow_nodes.push_back(simulate_plan(program, *point.make_world(), slower).step_time - step.time);
  }
  for (const OpenParameter& open : resampled_parameters(options, *spec.profile)) {
    for (const double end : {open.fitted.p5, open.fitted.p95}) {
      const auto world = point.make_world(open.at(*spec.profile, end));
      step.fitted.push_back(simulate_plan(program, *world, conditions).step_time - step.time);
    }
  }
  for (const ClusterSpec& other : rerouted(options, spec.cluster)) {
    step.routes.push_back(simulate_plan(program, *point.make_world(other), conditions).step_time - step.time);
  }
}

SimulatedStep simulated(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                        std::size_t memory_ranks) {
  Stopwatch watch;
  PhaseTimes phases;
  const Batch batch = point.batches_of(plan).step(step);
  phases.batch_s = watch.lap();
  const Plan made = asked_for(*point.planners.at(plan), batch, step);
  phases.planner_s = watch.lap();
  require_sound(made);
  phases.check_s = watch.lap();

  const PointSpec& spec = point.spec;
  const Program program(made, lowering_of(spec));
  const StepConditions conditions = conditions_of(point);
  Timeline timeline = simulate_plan(program, world, conditions);
  phases.simulation_s = watch.lap();

  SimulatedStep result{summary(made, batch, point, world, timeline), {}, {}, {}};
  if (spec.uncertainty && takes_elasticities(*spec.uncertainty, step, spec.steps)) {
    add_changes(point, program, conditions, result.result);
  }
  add_memory(program, room_of(spec), point.work, timeline, memory_ranks, result);
  if (spec.loading) {
    const LoadingJob job = loading_job(spec.mesh, spec.nodes.count(spec.cluster), made, result.result.tokens);
    add_loading(*spec.loading, job, result);
  }
  phases.summary_s = watch.lap();
  result.result.phases = phases;
  result.ranks = std::move(timeline.ranks);
  result.links = {std::move(timeline.links), std::move(timeline.other_links)};
  return result;
}

}  // namespace

SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                            std::size_t memory_ranks) {
  return of_step(point.outsize, step, [&] { return simulated(point, plan, step, world, memory_ranks); });
}

}  // namespace hdpsim
