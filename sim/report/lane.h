#pragma once

#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/timeline.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// What one rank did in one step, micro-batch by micro-batch, in the order of execution.
struct Lane {
  struct Piece {
    MicroBatchId micro_batch;
    Instant begin;
    Instant end;
  };
  HdpRank rank;
  std::vector<Piece> pieces;  ///< One after another: none begins before the one before it has ended.
};

/// The lanes of some ranks. Where the timeline knows instructions, a piece lasts from the rank's first to its last;
/// otherwise from the first of its group that began to the last that ended, cut where the piece before it ends.
/// O(micro-batches of the ranks + instructions).
[[nodiscard]] std::vector<Lane> lanes_of(const Plan& plan, const Timeline& timeline, const std::vector<HdpRank>& ranks);

/// At most `count` ranks that stand for all: by the time that they were busy in the step, the least, the most, and
/// evenly between. Ties by rank; in ascending order of that time.
[[nodiscard]] std::vector<HdpRank> typical_ranks(const Timeline& timeline, std::size_t count);

}  // namespace hdpsim
