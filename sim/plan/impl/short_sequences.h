#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The sequences shorter than C that no micro-batch has taken yet. Of equal ones the last of the data goes first.
class ShortSequences {
 public:
  /// `longest_first`: the tail of longest_first(), from the first sequence shorter than C on. O(n).
  ShortSequences(const Batch& batch, std::span<const std::size_t> longest_first);

  /// Takes the longest of at most `most` tokens if `wanted` says so of it. Amortised O(log n).
  std::optional<std::size_t> take_longest_within(std::int64_t most,
                                                 const std::function<bool(std::size_t sequence)>& wanted);
  /// All that are left, longest first.
  [[nodiscard]] SequenceList rest() const;

 private:
  [[nodiscard]] std::size_t last_left(std::size_t end);

  const Batch& batch_;
  SequenceList ascending_;  // by (tokens, sequence)
  // Of the first i sequences: j where the last one that is left is the j-th of them, or a larger one from where to
  // look on. A forest of disjoint sets (Tarjan 1975), so that the way gets shorter each time it is gone.
  std::vector<std::uint32_t> last_left_;
};

/// One rank's micro-batches of short sequences, at most C tokens each, while they are being filled by best fit.
class RankPacks {
 public:
  /// Returns whether a new micro-batch had to be opened. O(log packs) and a move of the open ones.
  bool add(std::size_t sequence, std::int64_t tokens, std::int64_t capacity);
  [[nodiscard]] const std::vector<SequenceList>& packs() const { return packs_; }

 private:
  struct Open {
    std::int64_t room;
    std::size_t pack;
  };
  std::vector<SequenceList> packs_;
  std::vector<Open> open_;  // ascending by room
};

/// Deals sequences shorter than C, longest first, each to the rank that is done first: longest processing time first
/// (Graham 1969) from the loads that the ranks already have, in seconds; they are updated. A load grows by the
/// sequence's compute and, when a micro-batch is opened for it, by the fixed time of one; that fixed time is the grain
/// of the balance. `speeds` of ranks divide it; none: all are 1. O((n + P) log P).
[[nodiscard]] std::vector<RankPacks> deal_to_least_loaded(const Batch& batch, const SequenceList& sequences,
                                                          const PlanningContext& context, std::vector<double>& loads,
                                                          const std::vector<double>& speeds = {});

}  // namespace hdpsim
