#pragma once

#include <optional>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// A reduction of so many bytes of gradients over the pool with the network to itself: a reduce-scatter, or an
/// all-reduce, which is one and an all-gather.
[[nodiscard]] Estimate reduction_of(Bytes gradients, bool all_reduce, const Machine& machine);
/// Of the gradients of a stage, and the all-gather of its parameters. No time for what the step has done by then, or
/// what is nowhere to be gathered from. Whole experts come after the rest: both go over the same links.
[[nodiscard]] Duration gradient_reduction(const StepEnd& end, const Machine& machine);
[[nodiscard]] Duration parameter_gather(const StepEnd& end, const Machine& machine);

/// Of the worker with the slowest device for its stage's shard.
[[nodiscard]] Duration slowest_optimizer(const Program& program, const Machine& machine);

/// The sum of the gradients that a stage has in common with another one of its rank (StepEnd::twice): the two send each
/// other half of them and then what these have become. No time where there are none.
[[nodiscard]] Duration sum_with_other_stage(const Program& program, std::int64_t stage, const Machine& machine);
/// The longest of them, as pairs of stages sum beside each other.
[[nodiscard]] Duration sum_with_other_stages(const Program& program, const Machine& machine);

/// When the passes of a step ran, and what its collectives took.
struct StepTimes {
  Instant begin;
  const std::vector<Instant>& finished;  ///< By worker: when it ended its last pass.
  /// Of the collectives of all stages, which began together when the last worker had ended, as where jobs share the
  /// network. Nothing: each stage reduces its gradients as soon as its own workers have ended, and the network is idle.
  std::optional<Duration> sync = {};
};

/// What every worker does after its last pass, booked on top of the timeline's ranks: the wait for the slowest rank of
/// its stage, gradient sync, optimizer, fixed cost. The optimizer begins on all stages together, because it needs the
/// norm of the whole gradient; waiting for another stage is bubble. Sets step_time.
void finish_step(const Program& program, const Machine& machine, const StepTimes& times, Timeline& timeline);

}  // namespace hdpsim
