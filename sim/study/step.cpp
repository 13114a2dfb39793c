#include "sim/study/step.h"

#include <fmt/ranges.h>

#include <ctime>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/simulator.h"
#include "sim/plan/plan_check.h"
#include "sim/program/program.h"

namespace hdpsim {
namespace {

/// Processor seconds of this thread since it was made or since the last lap: what others do on the machine shows little.
class Stopwatch {
 public:
  double lap() {
    const double now = seconds();
    return now - std::exchange(start_, now);
  }

 private:
  static double seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  double start_ = seconds();
};

std::optional<Bytes> memory_per_peer(const DeviceProfile& profile) {
  return profile.connections ? profile.connections->memory_per_peer : std::nullopt;
}

void require_sound(const Plan& plan) {
  const std::vector<std::string> problems = check_plan(plan);
  HDPSIM_CHECK(problems.empty(), "the plan of '{}' for step {}: {}", plan.policy, plan.step, fmt::join(problems, "; "));
}

StepResult summary(const Plan& plan, const Batch& batch, const PointSpec& spec, const Timeline& timeline) {
  const ConnectionTable connections = connections_of(plan, spec.connections.communicators);
  return {.step = plan.step,
          .sequences = static_cast<std::int64_t>(batch.sequences.size()),
          .tokens = batch.tokens(),
          .micro_batches = static_cast<std::int64_t>(plan.micro_batches.size()),
          .model_flops = model_flops(spec.model, batch).count(),
          .time = timeline.step_time,
          .mean = timeline.mean(),
          .busy = busy_times(timeline),
          .evidence = timeline.evidence,
          .connections = {connections.most_peers(), connections.groups()},
          .memory = memory_use(plan, spec.model, spec.mesh, {&connections, memory_per_peer(*spec.profile)}),
          .events = timeline.events,
          .phases = {}};
}

}  // namespace

Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch) {
  Plan made = point.planners.at(plan)->plan(batch, step);
  require_sound(made);
  return made;
}

SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world) {
  const PointSpec& spec = point.spec;
  Stopwatch watch;
  PhaseTimes phases;
  const Batch batch = point.batches->step(step);
  phases.batch_s = watch.lap();
  const Plan made = point.planners.at(plan)->plan(batch, step);
  phases.planner_s = watch.lap();
  require_sound(made);
  phases.check_s = watch.lap();

  const LoweringOptions lowering{spec.model, spec.mesh, spec.profile->backward_ring.dkv_bytes_per_element};
  const Program program(made, lowering);
  Timeline timeline = simulate(program, world.machine(), spec.grain);
  phases.simulation_s = watch.lap();

  StepResult result = summary(made, batch, spec, timeline);
  phases.summary_s = watch.lap();
  result.phases = phases;
  return {std::move(result), std::move(timeline.ranks), std::move(timeline.link_bytes)};
}

}  // namespace hdpsim
