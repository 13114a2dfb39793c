#pragma once

#include "sim/document/document.h"

namespace hdpsim {

/// Reports what is wrong with a planner's entry in itself, whatever the mesh and the data: what can be told of a plan
/// while the study has problems elsewhere.
void check_plan_entry(const Value& entry, Diagnostics& diagnostics);

}  // namespace hdpsim
