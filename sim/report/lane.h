#pragma once

#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/timeline.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// The passes that one worker ran in one step, in the order of execution.
struct Lane {
  struct Piece {
    PassId pass;
    Instant begin;
    Instant end;
  };
  WorkerId worker;
  std::vector<Piece> pieces;  ///< None begins before the one before it has ended.
};

/// The lanes of some workers. If the timeline has instructions, a piece lasts from the worker's first instruction to
/// its last; otherwise from the first begin to the last end in its group, cut where the piece before it ends. O(passes
/// of the workers + instructions).
[[nodiscard]] std::vector<Lane> lanes_of(const Pipeline& pipeline, const Timeline& timeline,
                                         const std::vector<WorkerId>& workers);

/// The workers of some ranks: rank by rank, stage by stage.
[[nodiscard]] std::vector<WorkerId> workers_of(const Pipeline& pipeline, const std::vector<HdpRank>& ranks);

/// At most `count` representative ranks by their busy time in the step, over all stages together: the least busy, the
/// busiest, and evenly between them. Ties by rank; in ascending order of that time.
[[nodiscard]] std::vector<HdpRank> typical_ranks(const Pipeline& pipeline, const Timeline& timeline, std::size_t count);

}  // namespace hdpsim
