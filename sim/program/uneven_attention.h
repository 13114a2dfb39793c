#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/model/operation.h"
#include "sim/plan/group_cut.h"
#include "sim/plan/ring_steps.h"

namespace hdpsim {

/// An attention launch of the busiest rank of a group, which the others wait for.
struct BusiestLaunch {
  /// Of every document the rank's own tokens against each other, causally, and all of them against as many keys of
  /// other ranks as give its pairs, rounded to whole keys. A launch without pairs has one, since it is launched.
  std::vector<AttentionBlock> blocks;
  std::int64_t foreign_queries = 0;  ///< Queries with keys of other ranks.
  double idle = 0;                   ///< Share of its pairs that the mean rank has not.
};

/// The launch of the rank with most pairs, where attended[r] are the queries of rank r by document and place in it.
/// O(pieces).
[[nodiscard]] BusiestLaunch busiest_launch(const std::vector<std::vector<CutPiece>>& attended);

/// What the cut of a micro-batch (MicroBatch::cut) makes of the attention of its group, of several ranks.
class GroupWork {
 public:
  /// O(pieces).
  explicit GroupWork(const MicroBatch& micro_batch);

  /// The most keys that a rank needs of others.
  [[nodiscard]] std::int64_t most_remote_keys() const;
  /// The rank with most pairs, with the keys of all ranks at once.
  [[nodiscard]] BusiestLaunch with_all_keys() const;
  /// The rank with most pairs of each step of a ring; not for dispatch (checked).
  [[nodiscard]] std::vector<BusiestLaunch> in_ring() const;

 private:
  std::unique_ptr<GroupCut> cut_;
  std::vector<RankWork> ranks_;
};

}  // namespace hdpsim
