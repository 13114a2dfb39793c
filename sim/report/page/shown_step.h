#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// What a page shows of one step: who worked with whom, and when. Bounded, whatever the size of the step.
struct ShownStep {
  /// Micro-batches by the number of ranks that shared them, ascending.
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
    std::int64_t ranks = 0;   ///< That shared it.
    std::int64_t tokens = 0;  ///< Of all of them.
    double offload = 0;
    std::int64_t micro_batch = 0;
    std::int64_t chunk = 0;
    PassKind kind = PassKind::whole;
  };
  struct Lane {
    std::int64_t rank = 0;
    std::int64_t stage = 0;
    Breakdown breakdown;  ///< Of the worker's time in the step; sums to it.
    std::vector<Piece> pieces;
    std::int64_t left_out = 0;  ///< Passes after the last piece.
  };

  static constexpr std::size_t most_lanes = 8;     ///< And at least all stages of one rank.
  static constexpr std::size_t most_pieces = 400;  ///< A lane.

  std::int64_t step = 0;
  Duration time;
  std::vector<GroupSize> group_sizes;
  /// Of typical_ranks(), the least busy one first; of a pipeline every stage of them, from the first on.
  std::vector<Lane> lanes;
};

/// O(passes + ranks log ranks).
[[nodiscard]] ShownStep shown_step(const Program& program, const Timeline& timeline);

}  // namespace hdpsim
