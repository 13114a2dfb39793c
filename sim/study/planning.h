#pragma once

#include "sim/engine/world.h"
#include "sim/plan/planner.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The context of a point's planners. `world` must have the point's cluster and jobs.
[[nodiscard]] PlanningContext planning_context(const PointSpec& spec, const World& world);

}  // namespace hdpsim
