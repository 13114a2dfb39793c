#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/impl/plan_builder.h"

namespace hdpsim {

/// Packs sequences into packs of at most `room` tokens by best fit: each goes where it leaves the least room. For
/// sequences longest first this is best-fit decreasing, which needs at most 11/9 of the minimum number of packs
/// (Johnson 1974). Packs are in the order in which they were opened, and each begins with the sequence that opened it.
/// O(n log n).
[[nodiscard]] std::vector<SequenceList> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room);

/// Packs sequences in the order of the data into packs of at most `room` tokens and `most` sequences (empty: any
/// number): one that does not fit closes the open pack and opens the next. A longer sequence has a pack of its own.
/// O(n).
[[nodiscard]] std::vector<SequenceList> next_fit(const Batch& batch, std::int64_t room,
                                                 std::optional<std::int64_t> most = {});

}  // namespace hdpsim
