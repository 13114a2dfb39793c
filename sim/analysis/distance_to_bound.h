#pragma once

#include <vector>

#include "sim/base/units.h"
#include "sim/plan/step_bounds.h"

namespace hdpsim {

/// What lies between a step and the time below which no plan of its batch comes. The last four sum to the step's time
/// less the bound; each may be negative, as the planners' work model is no part of the engine.
struct DistanceToBound {
  Duration bound;            ///< Of any plan of the batch, `ending` included.
  const char* reason = "";   ///< StepBounds::reason() of it.
  Duration ending;           ///< What comes after the last pass in any plan: gradients, optimizer.
  Duration estimate;         ///< Of this plan by the work model, `ending` included.
  Duration added;            ///< Work that this plan adds, spread evenly: sharing, more micro-batches, offload.
  Duration uneven;           ///< What the rank with most work has more than the mean.
  Duration waiting;          ///< Of ranks for others of their groups, and of the stages of a pipeline.
  Duration unknown_to_plan;  ///< All that the work model does not know: traffic of others, slow devices, overheads.
};

/// What the planners' work model says of a plan.
struct PlannedTime {
  Duration bound;            ///< Of any plan of the batch, without what follows the last pass.
  const char* reason = "";   ///< StepBounds::reason() of it.
  std::vector<double> busy;  ///< Seconds by rank, PlanTime::busy.
  double estimate = 0;       ///< Seconds of its step, StudyPoint::estimate().
  Duration ending;           ///< What follows in any plan.
};

/// `step`: the time as simulated. Requires a rank (checked).
[[nodiscard]] DistanceToBound distance_to_bound(const PlannedTime& planned, Duration step);

}  // namespace hdpsim
