#pragma once

#include <vector>

#include "sim/plan/plan.h"

namespace hdpsim {

/// An order of all micro-batches that agrees with every rank's schedule: a micro-batch that is ready earlier (all its
/// ranks have come to it) is earlier in it, and micro-batches that run together (WaveTable) are adjacent. Micro-batches
/// that wait for each other in a cycle, and those behind them, are missing. Ids out of range are skipped. O(sum of
/// schedule lengths).
[[nodiscard]] std::vector<MicroBatchId> order_of_execution(const Plan& plan);

}  // namespace hdpsim
