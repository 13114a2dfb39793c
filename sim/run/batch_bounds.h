#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/step_bounds.h"
#include "sim/study/study.h"

namespace hdpsim {

/// What no plan of the batch beats on the mesh of the point, by the costs that its planners know. O(n + ranks).
[[nodiscard]] StepBounds batch_bounds(const StudyPoint& point, const Batch& batch);

/// What no plan that uses host memory as `plan` does takes less than, whatever the schedule of a pipeline. A plan that
/// offloads may hold any sequence on any rank, so that the capacity does not bound it. `speeds` are those of the
/// workers relative to the device that the costs are for (Machine::speed); slower ones leave the bound as it is.
[[nodiscard]] Duration bound_beside(const Plan& plan, const StudyPoint& point, const Batch& batch,
                                    const std::vector<double>& speeds);

}  // namespace hdpsim
