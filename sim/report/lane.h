#pragma once

#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/timeline.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// What one worker did in one step, pass by pass, in the order of execution.
struct Lane {
  struct Piece {
    PassId pass;
    Instant begin;
    Instant end;
  };
  WorkerId worker;
  std::vector<Piece> pieces;  ///< One after another: none begins before the one before it has ended.
};

/// The lanes of some workers. Where the timeline knows instructions, a piece lasts from the worker's first to its last;
/// otherwise from the first of its group that began to the last that ended, cut where the piece before it ends.
/// O(passes of the workers + instructions).
[[nodiscard]] std::vector<Lane> lanes_of(const Pipeline& pipeline, const Timeline& timeline,
                                         const std::vector<WorkerId>& workers);

/// The workers of some ranks: rank by rank, stage by stage.
[[nodiscard]] std::vector<WorkerId> workers_of(const Pipeline& pipeline, const std::vector<HdpRank>& ranks);

/// At most `count` ranks that stand for all: by the time that they were busy in the step, on all stages together, the
/// least, the most, and evenly between. Ties by rank; in ascending order of that time.
[[nodiscard]] std::vector<HdpRank> typical_ranks(const Pipeline& pipeline, const Timeline& timeline, std::size_t count);

}  // namespace hdpsim
