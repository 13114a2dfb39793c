#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/engine/timeline.h"
#include "sim/plan/plan.h"

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
  /// A micro-batch on one rank.
  struct Piece {
    Instant begin;
    Instant end;
    std::int64_t ranks = 0;   ///< That shared it.
    std::int64_t tokens = 0;  ///< Of all of them.
    double offload = 0;
  };
  struct Lane {
    std::int64_t rank = 0;
    Duration busy;
    std::vector<Piece> pieces;
    std::int64_t left_out = 0;  ///< Micro-batches after the last piece.
  };

  static constexpr std::size_t most_lanes = 8;
  static constexpr std::size_t most_pieces = 400;  ///< A lane.

  std::int64_t step = 0;
  Duration time;
  std::vector<GroupSize> group_sizes;
  std::vector<Lane> lanes;  ///< Of typical_ranks(), the least busy one first.
};

/// O(micro-batches + ranks log ranks).
[[nodiscard]] ShownStep shown_step(const Plan& plan, const Timeline& timeline);

}  // namespace hdpsim
