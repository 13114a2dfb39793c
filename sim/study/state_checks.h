#pragma once

#include "sim/base/diagnostic.h"
#include "sim/document/document.h"
#include "sim/study/point.h"

namespace hdpsim {

/// Checks whether the states of a job suit each other, its model and its products: types of parameters, what is
/// gathered and reduced, adapters, states in host memory. `training`: the section that states them; the point has been
/// read. All problems are reported.
void check_states(const Value& training, const PointSpec& point, Diagnostics& diagnostics);

}  // namespace hdpsim
