#pragma once

#include "sim/analysis/memory.h"
#include "sim/plan/connection_table.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The memory of all devices while a plan of the point runs in the order of `pipeline`. `connections` are those of the
/// plan, of the point's kind; plan, point and connections must outlive the result.
[[nodiscard]] PlanMemory memory_of(const Pipeline& pipeline, const PointSpec& point,
                                   const ConnectionTable& connections);

/// True if the plan fits into the memory of every device of the point.
[[nodiscard]] bool fits(const Plan& plan, const PointSpec& point);

}  // namespace hdpsim
