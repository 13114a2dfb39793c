#pragma once

#include "sim/engine/world.h"
#include "sim/plan/planner.h"
#include "sim/study/point.h"

namespace hdpsim {

/// What the planners of a point are told. `world` is one of its cluster and jobs.
[[nodiscard]] PlanningContext planning_context(const PointSpec& spec, const World& world);

}  // namespace hdpsim
