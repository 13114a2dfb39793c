#pragma once

#include <string>

#include "sim/results/format.h"
#include "sim/run/plan_estimates.h"

namespace hdpsim {

/// One line a plan. The table says below what the bound rests on; JSON has every bound; CSV has the plans alone.
[[nodiscard]] std::string formatted(const StepEstimates& estimates, Format format);

}  // namespace hdpsim
