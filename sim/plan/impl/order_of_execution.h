#pragma once

#include <vector>

#include "sim/plan/plan.h"

namespace hdpsim {

/// One order of all micro-batches that every rank's schedule agrees with: what is ready first (all its ranks have come
/// to it) stands first, and micro-batches that run together (WaveTable) side by side. Micro-batches that wait for each
/// other in a circle, and those behind them, are missing. Ids that are out of range are skipped. O(sum of schedule
/// lengths).
[[nodiscard]] std::vector<MicroBatchId> order_of_execution(const Plan& plan);

}  // namespace hdpsim
