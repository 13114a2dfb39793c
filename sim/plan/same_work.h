#pragma once

#include "sim/plan/plan.h"

namespace hdpsim {

/// Whether one rank alone runs each of two micro-batches, and they differ in no more than the rank and which sequences
/// have these lengths: their work is the same. O(spans).
[[nodiscard]] bool have_same_work(const MicroBatch& a, const MicroBatch& b);

}  // namespace hdpsim
