#pragma once

#include <algorithm>
#include <vector>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/shared_options.h"

namespace hdpsim {

/// Orders packs that best_fit() made of sequences longest first. The key is the sequence that opened a pack, the
/// longest: its place in the data is independent of the number of others that joined it. If the key were the first
/// member in the data, the fullest packs would move to the front.
inline void put_in_order(std::vector<SequenceList>& packs, DealOrder order) {
  if (order == DealOrder::descending) return;
  std::sort(packs.begin(), packs.end(),
            [](const SequenceList& a, const SequenceList& b) { return a.front() < b.front(); });
}

}  // namespace hdpsim
