#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "sim/plan/group_cut.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// Which tokens of what its group shares each rank of a micro-batch holds: the cut of the executor and of every other
/// runtime. Per document it is SpanCuts; otherwise, in groups of several ranks, group_cut_of().
class HeldPieces {
 public:
  /// `micro_batch` must outlive it. O(spans), for dispatch as of dispatch_cut().
  explicit HeldPieces(const MicroBatch& micro_batch);
  /// The pieces of the `index`-th rank of the group, by span and place in it; CutPiece::document is the index of the
  /// span. Those of SpanCuts are two for every span, either of which may have no tokens. O(spans + pieces).
  [[nodiscard]] std::vector<CutPiece> of(std::size_t index) const;

 private:
  const MicroBatch& micro_batch_;
  SpanCuts spans_;
  std::unique_ptr<GroupCut> uneven_;  ///< Null: per document.
};

/// The same tokens in as few pieces as can be: those without tokens are left out, those that follow each other in a
/// span are one.
[[nodiscard]] std::vector<CutPiece> joined(const std::vector<CutPiece>& pieces);

/// Queries that move, and the index in the group of the rank that holds them. Those of several holders are apart.
struct HeldQueries {
  ServedQueries queries;
  std::size_t holder = 0;
  friend bool operator==(const HeldQueries&, const HeldQueries&) = default;
};

/// MicroBatch::moved by their holders, in its order. O((pieces + moved) log) of the whole group.
[[nodiscard]] std::vector<HeldQueries> moved_by_holder(const MicroBatch& micro_batch);

}  // namespace hdpsim
