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

/// Short sequences in micro-batches of one rank each, of at most C tokens.
struct DealtSequences {
  SequenceList sequences;            ///< In the order in which they were dealt.
  std::vector<std::uint32_t> packs;  ///< The micro-batch of each.
  std::vector<std::uint32_t> ranks;  ///< Of every micro-batch, in the order in which they were opened.

  /// Adds them to a plan, rank by rank, each rank's in the order in which they were opened. O(n + P).
  void add_to(PlanBuilder& builder) const;
};

/// Deals sequences shorter than C, longest first, each to the rank that is done first: longest processing time first
/// (Graham 1969) from the loads that the ranks already have, in seconds; they are updated. There it goes into the
/// fullest micro-batch that has room for it. A load grows by the sequence's compute and, when a micro-batch is opened
/// for it, by the fixed time of one; that fixed time is the grain of the balance. `speeds` of ranks divide it; none:
/// all are 1. O((n + P) log P) and a move of a rank's open micro-batches for each.
[[nodiscard]] DealtSequences deal_to_least_loaded(const Batch& batch, SequenceList sequences,
                                                  const PlanningContext& context, std::vector<double>& loads,
                                                  const std::vector<double>& speeds = {});

}  // namespace hdpsim
