#pragma once

#include "sim/engine/job.h"
#include "sim/plan/planner.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The context of a point's planners. `on` is the point's job.
[[nodiscard]] PlanningContext planning_context(const PointSpec& spec, const Job& on);

}  // namespace hdpsim
