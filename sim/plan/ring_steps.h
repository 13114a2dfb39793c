#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/group_cut.h"

namespace hdpsim {

/// Queries of one document on a rank with keys of the same document on another rank.
struct ForeignTile {
  std::int64_t queries = 0;
  Int128 pairs = 0;
};

/// One step of a ring, as the busiest of its ranks has it. In step k rank r has the keys of rank r - k.
struct RingStep {
  std::int64_t rank = 0;             ///< The rank with most (query, key) pairs in the step, the lowest of these.
  Int128 pairs = 0;                  ///< Its pairs.
  Int128 all = 0;                    ///< The pairs of all ranks.
  std::vector<std::int64_t> own;     ///< Step 0: its tokens of each document, which see each other causally.
  std::vector<ForeignTile> foreign;  ///< Other steps: at most one tile for each of its two chunks.
};

/// The N steps of a ring over a pack that is cut per_pack. O(documents + N log N): what a rank computes is constant
/// over all but a few steps.
///
/// The sum of the steps' pairs is what a ring takes whose ranks begin each step together. That is no less than what one
/// takes whose ranks wait for their messages alone, and this no less than the pairs of its busiest rank; all are equal
/// if one rank is the busiest in every step. How tight it is: over packs of 8,192 tokens a rank with lengths of density
/// 1 / s^2 up to 2Mi tokens, and messages without time, a ring of 4 to 64 ranks takes 0.87 of the sum on average and
/// 0.56 at least (a unit test). Its ranks do not run far ahead, because each posts the exchange of a step behind its
/// kernel two steps before.
[[nodiscard]] std::vector<RingStep> ring_steps(const GroupCut& per_pack);

}  // namespace hdpsim
