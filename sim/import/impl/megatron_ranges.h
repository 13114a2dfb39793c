#pragma once

#include "sim/base/quantity_limits.h"
#include "sim/document/reader.h"

namespace hdpsim::megatron_ranges {

// Ranges of a model's numbers: those of sim/model.
inline constexpr Range layers{1, 10'000};
inline constexpr Range hidden{1, 1e6};
inline constexpr Range heads{1, 1e5};
inline constexpr Range width{1, 1e7};
inline constexpr Range vocabulary{1, 1e7};
inline constexpr Range experts_range{0, 1e5};
inline constexpr Range chosen{1, 1000};
inline constexpr Range tokens{1, limits::most_tokens_of_sequence};
// Of a run.
inline constexpr Range degree{1, 65536};
inline constexpr Range gpus{1, 16 * 1024 * 1024};
inline constexpr Range sequences{1, 1e6};

}  // namespace hdpsim::megatron_ranges
