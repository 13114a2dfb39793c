#include "sim/run/step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/engine/simulator.h"
#include "sim/plan/plan_check.h"
#include "sim/program/program.h"
#include "sim/study/point_memory.h"
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
auto of_step(const StudyPoint& point, std::int64_t step, Work work) {
  try {
    return work();
  } catch (const QuantityOverflow& overflow) {
    Diagnostics found;
    found.add(point.outsize.problem(fmt::format("step {}", step), overflow.what()));
    Problems(found).throw_if_any({});
    throw;
  }
}

void require_sound(const Plan& plan) {
  const std::vector<std::string> problems = check_plan(plan);
  HDPSIM_CHECK(problems.empty(), "the plan of '{}' for step {}: {}", plan.policy, plan.step, fmt::join(problems, "; "));
}

StepResult summary(const Plan& plan, const Batch& batch, const PointSpec& spec, const Timeline& timeline) {
  return {.step = plan.step,
          .sequences = static_cast<std::int64_t>(batch.sequences.size()),
          .tokens = batch.tokens(),
          .micro_batches = static_cast<std::int64_t>(plan.micro_batches.size()),
          .model_flops = model_flops(spec.model, batch).count(),
          .time = timeline.step_time,
          .mean = timeline.mean(),
          .busy = busy_times(timeline),
          .evidence = timeline.evidence,
          .connections = {},
          .memory = {},
          .events = timeline.events,
          .phases = {}};
}

// Who talked to whom, and what all devices held.
void add_memory(const Program& program, const StudyPoint& point, const Timeline& timeline, std::size_t memory_ranks,
                SimulatedStep& step) {
  const ConnectionTable connections = connections_of(program.plan(), point.spec.connections.communicators);
  step.result.connections = {connections.most_peers(), connections.groups()};
  PlanMemory memory = memory_of(program.pipeline(), point.spec, connections);
  memory.place(timeline, point.work);
  step.result.memory = memory.use();
  for (const HdpRank rank : memory.fullest(memory_ranks))
    step.memory.push_back(memory.over_time(rank, timeline, point.work));
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

// Adds the time of loading the step's batch, and the host memory that its loaders hold all the time.
void add_loading(const Plan& plan, const PointSpec& spec, SimulatedStep& step) {
  const LoadingJob job{.ranks = spec.mesh.hdp,
                       .devices_per_rank = spec.mesh.tp * spec.mesh.pp,
                       .nodes = spec.nodes.count(spec.cluster),
                       .tokens = step.result.tokens,
                       .largest_share = largest_share(plan)};
  step.result.loading = loading_stages(*spec.loading, job);
  const Bytes held = loading_memory(*spec.loading, job);
  step.result.memory.host += held;
  for (RankMemory& rank : step.memory) {
    for (MemorySample& sample : rank.samples) sample.host += held;
  }
}

// The change of the step with each family's costs, under the same plan: the difference quotient over one standard
// deviation either way. Two simulations per family.
std::vector<Duration> slopes_of(const StudyPoint& point, const Program& program) {
  const PointSpec& spec = point.spec;
  const FamilyErrors errors = errors_of(*spec.uncertainty, *spec.profile, spec.model.head_dim);
  std::vector<Duration> slopes;
  for (std::size_t i = 0; i < cost_families; ++i) {
    const auto family = static_cast<CostFamily>(i);
    const double change = std::min(0.5, nudge(errors[i]));
    const auto time = [&](double factor) {
      FamilyFactors factors;
      factors[family] = factor;
      return simulate_plan(point, program, *point.make_world(factors)).step_time;
    };
    slopes.push_back((time(1 + change) - time(1 - change)).scaled(1 / (2 * change)));
  }
  return slopes;
}

// The other jobs during a step of the main job: each from its own step of the same number on.
Background background_of(const StudyPoint& point, std::int64_t step, World& world) {
  Background background;
  for (std::size_t i = 0; i < point.neighbours.size(); ++i) {
    const StudyNeighbour& job = point.neighbours[i];
    background.jobs.push_back(
        {job.name, &world.neighbour(i).machine(), lowering_of(*job.spec), [&job, step](std::int64_t n) {
           Plan plan = job.planner->plan(job.batches->step(step + n), step + n);
           require_sound(plan);
           return plan;
         }});
  }
  for (const BackgroundSpec& other : point.spec.background) {
    if (other.job != nullptr) continue;
    BackgroundTraffic traffic{other.name, messages_of(other.traffic)};
    const std::int64_t per_node = point.spec.cluster.devices_per_node;
    for (Message& message : traffic.messages) {
      message.from = other.nodes.device(message.from.index(), per_node);
      message.to = other.nodes.device(message.to.index(), per_node);
    }
    background.traffic.push_back(std::move(traffic));
  }
  return background;
}

}  // namespace

void require_simulable(const StudyPoint& point) {
  constexpr double usual = 50;
  if (point.outsize.times < usual) return;
  const std::unique_ptr<World> world = point.make_world();
  const Batch batch = point.batches->step(0);
  for (std::size_t plan = 0; plan < point.planners.size(); ++plan) {
    const Plan made = make_plan(point, plan, 0, batch);
    const LoweringOptions lowering = lowering_of(point.spec);
    const Program program(made, lowering);
    of_step(point, 0, [&] { return simulate(program, world->machine(), Grain::closed_form); });
  }
}

Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch) {
  return of_step(point, step, [&] {
    Plan made = point.planners.at(plan)->plan(batch, step);
    require_sound(made);
    return made;
  });
}

Timeline simulate_plan(const StudyPoint& point, const Program& program, World& world) {
  const PointSpec& spec = point.spec;
  const std::int64_t step = program.plan().step;
  return of_step(point, step, [&] {
    world.set_time_factors(spec.conditions.any() ? time_factors(spec.conditions, spec.cluster.devices, step)
                                                 : std::vector<double>{});
    return simulate(program, world.machine(), spec.grain, background_of(point, step, world));
  });
}

namespace {

SimulatedStep simulated(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                        std::size_t memory_ranks) {
  const PointSpec& spec = point.spec;
  Stopwatch watch;
  PhaseTimes phases;
  const Batch batch = point.batches->step(step);
  phases.batch_s = watch.lap();
  const Plan made = point.planners.at(plan)->plan(batch, step);
  phases.planner_s = watch.lap();
  require_sound(made);
  phases.check_s = watch.lap();

  const LoweringOptions lowering = lowering_of(spec);
  const Program program(made, lowering);
  Timeline timeline = simulate_plan(point, program, world);
  phases.simulation_s = watch.lap();

  SimulatedStep result{summary(made, batch, spec, timeline), {}, {}, {}};
  if (spec.uncertainty && takes_elasticities(*spec.uncertainty, step, spec.steps)) {
    result.result.slopes = slopes_of(point, program);
  }
  add_memory(program, point, timeline, memory_ranks, result);
  if (spec.loading) add_loading(made, spec, result);
  phases.summary_s = watch.lap();
  result.result.phases = phases;
  result.ranks = std::move(timeline.ranks);
  result.links = {std::move(timeline.link_bytes), std::move(timeline.other_link_bytes)};
  return result;
}

}  // namespace

SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world,
                            std::size_t memory_ranks) {
  return of_step(point, step, [&] { return simulated(point, plan, step, world, memory_ranks); });
}

}  // namespace hdpsim
