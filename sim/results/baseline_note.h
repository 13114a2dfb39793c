#pragma once

#include <string>
#include <vector>

#include "sim/analysis/metrics.h"

namespace hdpsim {

/// What the speed-ups of a study are over, a sentence without a full stop each: the baseline on the study's mesh, which
/// need not be its best, and the best static mesh beside it, or a tuned one, which is named; or that the baseline does
/// not fit. Empty without speed-ups.
[[nodiscard]] std::vector<std::string> baseline_notes(const std::vector<Run>& runs);

}  // namespace hdpsim
