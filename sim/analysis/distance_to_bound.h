#pragma once

#include "sim/base/units.h"
#include "sim/plan/plan_time.h"
#include "sim/plan/step_bounds.h"

namespace hdpsim {

/// What lies between a step and the time below which no plan of its batch comes. The parts from `added` on sum to the
/// step's time less the bound; each may be negative, as the planners' work model is no part of the engine.
struct DistanceToBound {
  Duration bound;            ///< By the work model, of any plan.
  const char* reason = "";   ///< StepBounds::reason() of it.
  Duration estimate;         ///< The work model's time of this plan.
  Duration added;            ///< Work that this plan adds, spread evenly: sharing, more micro-batches, offload.
  Duration uneven;           ///< What the rank with most work has more than the mean.
  Duration waiting;          ///< Of ranks for others of their groups, and of the stages of a pipeline.
  Duration ending;           ///< The end of the step: gradients that are still to be reduced, the optimizer.
  Duration unknown_to_plan;  ///< All that the work model does not know: traffic of others, slow devices, overheads.
};

/// `estimate`: of the plan, for a pipeline of `stages`. `bound`: PointStep::bound(); `reason`: what it rests on.
/// `step` and `ending`: as simulated.
[[nodiscard]] DistanceToBound distance_to_bound(Duration bound, const char* reason, const PlanTime& estimate,
                                                std::int64_t stages, Duration step, Duration ending);

}  // namespace hdpsim
