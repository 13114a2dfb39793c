#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/plan_builder.h"

namespace hdpsim {

/// Packs sequences into packs of at most `room` tokens by best fit: each goes where the least room is left over. Given
/// longest first this is best-fit decreasing, at most 11/9 of the fewest packs possible (Johnson 1974). Packs stand in
/// the order in which they were opened, and each begins with the sequence that opened it. O(n log n).
[[nodiscard]] std::vector<SequenceList> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room);

}  // namespace hdpsim
