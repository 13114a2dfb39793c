#pragma once

#include <cstdint>
#include <optional>

#include "sim/plan/impl/pool_fit.h"

namespace hdpsim {

/// The tokens that a micro-batch on `cp` ranks should have, in policies that derive the number of micro-batches from
/// tokens, but then balance work, so that a micro-batch of short sequences may have more. `tokens_of_rank`: what a rank
/// should hold; if empty, its capacity, and an error if more.
[[nodiscard]] std::int64_t micro_batch_limit(PoolFit& pool, std::int64_t cp,
                                             std::optional<std::int64_t> tokens_of_rank);

}  // namespace hdpsim
