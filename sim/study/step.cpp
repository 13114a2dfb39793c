#include "sim/study/step.h"

#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/simulator.h"
#include "sim/plan/plan_check.h"
#include "sim/program/program.h"

namespace hdpsim {
namespace {

/// Seconds of this machine since it was made.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::optional<Bytes> memory_per_peer(const DeviceProfile& profile) {
  return profile.connections ? profile.connections->memory_per_peer : std::nullopt;
}

void require_sound(const Plan& plan) {
  const std::vector<std::string> problems = check_plan(plan);
  HDPSIM_CHECK(problems.empty(), "the plan of '{}' for step {}: {}", plan.policy, plan.step, fmt::join(problems, "; "));
}

}  // namespace

Plan make_plan(const StudyPoint& point, std::size_t plan, std::int64_t step, const Batch& batch) {
  Plan made = point.planners.at(plan)->plan(batch, step);
  require_sound(made);
  return made;
}

SimulatedStep simulate_step(const StudyPoint& point, std::size_t plan, std::int64_t step, World& world) {
  const PointSpec& spec = point.spec;
  const Batch batch = point.batches->step(step);
  const Stopwatch planning;
  const Plan made = point.planners.at(plan)->plan(batch, step);
  const double planner_s = planning.seconds();
  require_sound(made);

  const Stopwatch simulating;
  const LoweringOptions lowering{spec.model, spec.mesh, spec.profile->backward_ring.dkv_bytes_per_element};
  const Program program(made, lowering);
  Timeline timeline = simulate(program, world.machine(), spec.grain);
  const double simulation_s = simulating.seconds();
  const ConnectionTable connections = connections_of(made, spec.connections.communicators);

  return {{.step = step,
           .sequences = static_cast<std::int64_t>(batch.sequences.size()),
           .tokens = batch.tokens(),
           .micro_batches = static_cast<std::int64_t>(made.micro_batches.size()),
           .model_flops = model_flops(spec.model, batch).count(),
           .time = timeline.step_time,
           .mean = timeline.mean(),
           .busy = busy_times(timeline),
           .evidence = timeline.evidence,
           .connections = {connections.most_peers(), connections.groups()},
           .memory = memory_use(made, spec.model, spec.mesh, {&connections, memory_per_peer(*spec.profile)}),
           .events = timeline.events,
           .wall = {planner_s, simulation_s}},
          std::move(timeline.ranks),
          std::move(timeline.link_bytes)};
}

}  // namespace hdpsim
