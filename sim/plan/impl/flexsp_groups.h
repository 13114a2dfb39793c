#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/impl/slot.h"

namespace hdpsim {

/// The ranks that groups divide among them.
struct GroupPool {
  std::int64_t ranks = 1;         ///< A power of two.
  std::int64_t capacity = 1;      ///< Tokens of a rank.
  std::int64_t least_degree = 1;  ///< Of a group; a power of two, as all degrees are.
};

/// The degrees of groups in a pool, and what each takes for every sequence of a batch.
class GroupPrices {
 public:
  /// Asks for n log(ranks) times of n sequences.
  GroupPrices(const Batch& batch, const GroupPool& pool, const GroupTimes& times);

  [[nodiscard]] const std::vector<std::int64_t>& degrees() const { return degrees_; }  ///< Rising.
  /// Seconds of a group of degrees()[level] without sequences, and more for each of them.
  [[nodiscard]] double fixed(std::size_t level) const { return fixed_[level]; }
  [[nodiscard]] double seconds(std::size_t sequence, std::size_t level) const {
    return seconds_[sequence * degrees_.size() + level];
  }

 private:
  std::vector<std::int64_t> degrees_;
  std::vector<double> fixed_;
  std::vector<double> seconds_;  // by sequence and degree
};

/// Cuts a list of sequences into `count` (at most as many as they are, checked) runs that are not empty, so that the
/// largest sum of tokens is the least (FlexSP's "blaster"); of equally good cuts it takes the earliest. O(n count).
[[nodiscard]] std::vector<SequenceList> even_runs(const Batch& batch, const SequenceList& sequences, std::size_t count);

/// Groups that take all ranks and sequences (longest first) and end early: FlexSP's mixed-integer program without a
/// solver. Degrees are found by splitting a group in two and joining two of equal degree as long as that helps, from
/// the best single degree; sequences go, longest first, to the group that ends first; then sequences are exchanged.
/// `load` of a group is its seconds. `prices` are those of the batch and the pool. Empty if no such groups hold the
/// sequences.
[[nodiscard]] std::optional<Slot> early_groups(const Batch& batch, const SequenceList& longest_first,
                                               const GroupPool& pool, const GroupPrices& prices);

}  // namespace hdpsim
