#pragma once

#include <optional>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The time of a reduction of `gradients` over the data-parallel group without other traffic: a reduce-scatter or, if
/// `all_reduce`, a reduce-scatter and an all-gather. Where ranks shard states in groups, a reduce-scatter in each group
/// and an all-reduce of its shards over the groups. Whole experts come behind the other parameters, because both use
/// the same links.
[[nodiscard]] Estimate reduction_of(const PoolBytes& gradients, bool all_reduce, const Machine& machine);
/// The time of an all-gather of `parameters` among the ranks that shard them.
[[nodiscard]] Estimate gather_of(const PoolBytes& parameters, const Machine& machine);
/// The times of a stage's gradient reduction and of its parameter all-gather, or the broadcasts in its place, at the
/// end of the step. They are 0 where the passes have done this work already, and the all-gather is 0 where the
/// optimizer is not sharded.
[[nodiscard]] Duration gradient_reduction(const StepEnd& end, const Machine& machine);
[[nodiscard]] Duration parameter_gather(const StepEnd& end, const Machine& machine);

/// The time of the optimizer on a device of nominal speed, with the weakest evidence among its kernels; that of the
/// host if it takes longer for its part.
[[nodiscard]] Estimate optimizer_estimate(const OptimizerWork& work, const Machine& machine);
/// The longest optimizer time of a worker, over all stages.
[[nodiscard]] Duration slowest_optimizer(const Program& program, const Machine& machine);

/// The time to sum the gradients that a stage has in common with another stage of its rank (StepEnd::twice): each of
/// the two stages sends one half to the other, which sums it, and then sends back the sums of its own half. 0 if there
/// are no such gradients.
[[nodiscard]] Duration sum_with_other_stage(const Program& program, std::int64_t stage, const Machine& machine);
/// The longest of these times, because pairs of stages sum at the same time.
[[nodiscard]] Duration sum_with_other_stages(const Program& program, const Machine& machine);

/// What no plan of the program's job takes less than between its last pass and the end of the step: gradients that no
/// pass has reduced, the optimizer, parameters that are gathered, the fixed cost; the least of all stages.
[[nodiscard]] Duration least_ending(const Program& program, const Machine& machine);

/// When the passes of a step ran, and how long its collectives took.
struct StepTimes {
  Instant begin;
  const std::vector<Instant>& finished;  ///< By worker: when it ended its last pass.
  /// The time of the collectives where jobs share the network: those of all stages begin together, when the last worker
  /// has ended. If empty, each stage reduces its gradients as soon as its own workers have ended, on an idle network.
  std::optional<Duration> sync = {};
};

/// Adds to the timeline what every worker does after its last pass: it waits for the slowest rank of its stage,
/// synchronizes gradients, runs the optimizer and pays the fixed cost. The optimizer begins on all stages together,
/// because it needs the norm of the whole gradient; the wait for another stage is booked as bubble. Sets step_time.
void finish_step(const Program& program, const Machine& machine, const StepTimes& times, Timeline& timeline);

}  // namespace hdpsim
