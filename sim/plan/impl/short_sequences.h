#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/ring_sizing.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The sequences shorter than C that no micro-batch has taken yet. Among equal ones the last of the data goes first.
class ShortSequences {
 public:
  /// `longest_first` is the tail of longest_first(), from the first sequence shorter than C on. O(n).
  ShortSequences(const Batch& batch, std::span<const std::size_t> longest_first);

  /// Takes the longest sequence of at most `most` tokens if `wanted` returns true for it. Amortised O(log n).
  std::optional<std::size_t> take_longest_within(std::int64_t most,
                                                 const std::function<bool(std::size_t sequence)>& wanted);
  /// All sequences that are left, longest first.
  [[nodiscard]] SequenceList rest() const;

 private:
  [[nodiscard]] std::size_t last_left(std::size_t end);

  const Batch& batch_;
  SequenceList ascending_;  // by (tokens, sequence)
  // By i: the place j of the last sequence left among the first i (it is the j-th), or a larger place from which to
  // search on. A forest of disjoint sets (Tarjan 1975), whose paths get shorter with each search.
  std::vector<std::uint32_t> last_left_;
};

/// Short sequences in micro-batches of one rank each, of at most C tokens.
struct DealtSequences {
  SequenceList sequences;            ///< In the order in which they were dealt.
  std::vector<std::uint32_t> packs;  ///< The micro-batch of each sequence.
  std::vector<std::uint32_t> ranks;  ///< Rank of every micro-batch, in the order in which they were opened.
  RingSize size = {};                ///< Of every micro-batch.

  /// Adds the micro-batches to a plan, rank by rank, those of a rank in the order in which they were opened. O(n + P).
  void add_to(PlanBuilder& builder) const;
};

/// Deals sequences shorter than C, longest first, each to the rank that is done first: longest processing time first
/// (Graham 1969) from the loads that the ranks already have, in seconds, which are updated. On the rank, a sequence
/// goes into the fullest micro-batch that has room for it. A load grows by the sequence's compute and, when a
/// micro-batch is opened for it, by the fixed time of a micro-batch; that fixed time is the grain of the balance. Where
/// `sizing` offloads packs, it also grows by what the sequence would wait for its own copies. All are divided by the
/// rank's entry in `speeds`; if that is empty, all are 1. O((n + P) log P) plus, for each sequence, a move of a rank's
/// open micro-batches.
[[nodiscard]] DealtSequences deal_short_sequences(const Batch& batch, SequenceList sequences, const RingSizing& sizing,
                                                  std::vector<double>& loads, const std::vector<double>& speeds = {});

}  // namespace hdpsim
