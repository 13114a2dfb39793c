#pragma once

#include <algorithm>
#include <vector>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/policy.h"

namespace hdpsim {

/// Packs as best_fit() returns them, given longest first. The opening sequence is the longest of its pack, and its
/// place in the data is independent of how many others joined it; the first of all members would move the fullest packs
/// to the front.
inline void put_in_order(std::vector<SequenceList>& packs, DealOrder order) {
  if (order == DealOrder::descending) return;
  std::sort(packs.begin(), packs.end(),
            [](const SequenceList& a, const SequenceList& b) { return a.front() < b.front(); });
}

}  // namespace hdpsim
