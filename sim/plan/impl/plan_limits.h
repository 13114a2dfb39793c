#pragma once

#include <cstdint>

#include "sim/base/quantity_limits.h"

namespace hdpsim {

// What files of plans, and outputs of other schedulers, may state at most.
inline constexpr double most_tokens_of_plans = limits::most_tokens_of_sequence;
inline constexpr double most_layers_of_plans = 1e5;
inline constexpr double most_steps_of_plans = 1e15;
/// Ranks of all groups together: a short text can name a million of them.
inline constexpr std::int64_t most_members_of_groups = std::int64_t{1} << 25;

}  // namespace hdpsim
