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

/// Those of one length in a list of sequences, longest first: places [begin, end).
struct SameLength {
  std::int64_t tokens;
  std::size_t begin;
  std::size_t end;
};

/// The sequences shorter than C that no micro-batch has taken yet. Among equal ones the last of the data goes first.
/// A copy costs O(lengths that occur).
class ShortSequences {
 public:
  /// `sequences` is the tail of sized_longest_first(), from the first sequence shorter than C on, and outlives this.
  /// O(n).
  explicit ShortSequences(std::span<const SizedSequence> sequences);

  /// Takes the longest sequence of at most `most` tokens if `wanted` returns true for its tokens. Amortised O(log n).
  std::optional<SizedSequence> take_longest_within(std::int64_t most,
                                                   const std::function<bool(std::int64_t tokens)>& wanted);
  /// Calls visit(tokens, sequences) for every length of which some are left, longest first, with the sequences in the
  /// order of the data.
  template <class Visit>
  void for_each_length(const Visit& visit) const {
    for (const SameLength& each : left_) {
      if (each.begin < each.end) visit(each.tokens, sequences_.subspan(each.begin, each.end - each.begin));
    }
  }
  [[nodiscard]] std::size_t count() const;      ///< Of those that are left.
  [[nodiscard]] std::int64_t shortest() const;  ///< Tokens of the shortest that is left, of at least one.

 private:
  [[nodiscard]] std::size_t first_left(std::size_t length);

  std::span<const SizedSequence> sequences_;
  std::vector<SameLength> left_;
  // By length: the first from there on of which some are left, or one before it from which to search on. A forest of
  // disjoint sets (Tarjan 1975), whose paths get shorter with each search.
  std::vector<std::size_t> first_left_;
};

/// Short sequences in micro-batches of one rank each, of at most C tokens.
struct DealtSequences {
  std::optional<ShortSequences> sequences;  ///< Dealt in their order. Empty: none were.
  std::vector<std::uint32_t> packs;         ///< The micro-batch of each sequence.
  std::vector<std::uint32_t> ranks;         ///< Rank of every micro-batch, in the order in which they were opened.
  RingSize size = {};                       ///< Of every micro-batch.

  /// Adds the micro-batches to a plan, rank by rank, those of a rank in the order in which they were opened; once.
  /// O(n + P).
  void add_to(PlanBuilder& builder);
};

/// Deals sequences shorter than C, longest first, each to the rank that is done first: longest processing time first
/// (Graham 1969) from the loads that the ranks already have, in seconds, which are updated. On the rank, a sequence
/// goes into the fullest micro-batch that has room for it. A load grows by the sequence's compute and, when a
/// micro-batch is opened for it, by the fixed time of a micro-batch; that fixed time is the grain of the balance. Where
/// `sizing` offloads packs, it also grows by what the sequence would wait for its own copies. All are divided by the
/// rank's entry in `speeds`; if that is empty, all are 1. O((n + P) log P) plus, for each sequence, a move of a rank's
/// open micro-batches.
[[nodiscard]] DealtSequences deal_short_sequences(ShortSequences sequences, const RingSizing& sizing,
                                                  std::vector<double>& loads, const std::vector<double>& speeds = {});

}  // namespace hdpsim
