#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/impl/slot.h"
#include "sim/plan/work_model.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// Packs of even work, whatever their tokens.
struct WorkPacks {
  std::vector<SequenceList> packs;
  std::vector<double> work;  ///< Compute seconds of each pack.
  SequenceList left;         ///< What fits into none of them, in the order of the sequences.
};

/// WLB-LLM's greedy packing (Wang et al. 2025, arXiv 2503.17924, algorithm 1): each sequence, in `order`, goes to the
/// pack of least work or, where it has no room for it, to that of fewest tokens; the first among equals. A pack holds
/// `room` tokens. `count` >= 1. O(sequences log count).
[[nodiscard]] WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count,
                                     std::int64_t room, const WorkModel& work);

}  // namespace hdpsim
