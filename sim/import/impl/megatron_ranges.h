#pragma once

#include "sim/base/quantity_limits.h"
#include "sim/model/model_ranges.h"

namespace hdpsim::megatron_ranges {

using namespace model_ranges;

/// None, too, where there need be no experts.
inline constexpr Range experts_range{0, model_ranges::experts.most};
inline constexpr Range tokens = positions;
inline constexpr Range modules{0, 100};  ///< That predict further tokens.
// ---- The mesh and the batch of a run
inline constexpr Range degree{1, 65536};
inline constexpr Range buckets{1, 1e12};
inline constexpr Range gpus{1, limits::most_devices};
inline constexpr Range sequences{1, 1e6};

}  // namespace hdpsim::megatron_ranges
