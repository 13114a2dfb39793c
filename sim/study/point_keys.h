#pragma once

#include "sim/document/key_table.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The key `grain`: how fine the simulation is.
[[nodiscard]] KeyText grain_key();
void read_grain(const Value& value, PointSpec& point, Diagnostics& diagnostics);

/// The keys of `planner`: the knowledge of policies.
[[nodiscard]] const std::vector<KeyText>& planner_keys();
void read_planner(const Value& value, PlannerKnowledge& knows, Diagnostics& diagnostics);

}  // namespace hdpsim
