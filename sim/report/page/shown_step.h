#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/link_use.h"
#include "sim/base/units.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The part of one step that a page shows: who worked with whom, and when. Its size is bounded, whatever the size of
/// the step.
struct ShownStep {
  /// Micro-batches by the number of ranks that share them, ascending.
  struct GroupSize {
    std::int64_t ranks = 0;
    std::int64_t micro_batches = 0;
    std::int64_t tokens = 0;
    friend bool operator==(const GroupSize&, const GroupSize&) = default;
  };
  /// A pass of a micro-batch on one worker.
  struct Piece {
    Instant begin;
    Instant end;
    std::int64_t ranks = 0;   ///< Ranks that share it.
    std::int64_t tokens = 0;  ///< Tokens of all of them.
    double offload = 0;
    std::int64_t micro_batch = 0;
    std::int64_t chunk = 0;
    PassKind kind = PassKind::whole;
  };
  struct Lane {
    std::int64_t rank = 0;
    std::int64_t stage = 0;
    Breakdown breakdown;  ///< The worker's time in the step; sums to it.
    std::vector<Piece> pieces;
    std::int64_t left_out = 0;  ///< Passes after the last piece.
  };

  static constexpr std::size_t most_lanes = 8;     ///< Or all stages of one rank, if they are more.
  static constexpr std::size_t most_pieces = 400;  ///< Per lane.

  std::int64_t step = 0;
  Duration time;
  std::vector<GroupSize> group_sizes;
  std::vector<LinkKindUse> links;  ///< Use of all links over the step; the caller knows the network and fills it in.
  /// Lanes of typical_ranks(), the least busy one first; in a pipeline every stage of them, from the first on.
  std::vector<Lane> lanes;
};

/// Takes O(passes + ranks log ranks).
[[nodiscard]] ShownStep shown_step(const Program& program, const Timeline& timeline);

}  // namespace hdpsim
