#pragma once

#include "sim/engine/world.h"
#include "sim/plan/planner.h"
#include "sim/study/point.h"

namespace hdpsim {

/// Takes a point apart for its planners. `on` is the point's job.
[[nodiscard]] PlanningContext planning_context(const PointSpec& spec, const Job& on);

}  // namespace hdpsim
