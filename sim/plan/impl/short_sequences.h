#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The sequences shorter than C that no micro-batch has taken yet.
class ShortSequences {
 public:
  explicit ShortSequences(const Batch& batch) : batch_(batch) {}

  void add(std::size_t sequence) { left_.insert({batch_.sequences[sequence].tokens, sequence}); }
  /// The longest of at most `most` tokens.
  [[nodiscard]] std::optional<std::size_t> longest_within(std::int64_t most) const;
  void remove(std::size_t sequence) { left_.erase({batch_.sequences[sequence].tokens, sequence}); }
  /// All that are left, longest first.
  [[nodiscard]] SequenceList rest() const;

 private:
  const Batch& batch_;
  std::set<std::pair<std::int64_t, std::size_t>> left_;  // (tokens, sequence)
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
/// of the balance. O((n + P) log P).
[[nodiscard]] std::vector<RankPacks> deal_to_least_loaded(const Batch& batch, const SequenceList& sequences,
                                                          const PlanningContext& context, std::vector<double>& loads);

}  // namespace hdpsim
