#pragma once

#include <cstdint>
#include <vector>

#include "kernels/exec/tokens.h"
#include "kernels/ring/sharding.h"
#include "sim/plan/plan.h"

namespace hdpsim::kernels::exec {

/// One rank's share of a micro-batch: the rows of its pieces of all spans, as the plan cuts them.
struct Share {
  ShardedDocuments documents;  ///< The spans.
  std::vector<int> members;    ///< Ranks of the transport, in the order of the ring.
  int position = 0;            ///< Index of the rank in `members`.

  // One entry per row.
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;    ///< The next token of the sequence, on whichever rank; -1 for its last.
  std::vector<std::int32_t> positions;  ///< Position in the sequence, for rotary embeddings.

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(ids.size()); }
};

/// The share of `rank`, which must be in the micro-batch's group. O(spans + rows).
[[nodiscard]] Share share_of(const Plan& plan, MicroBatchId id, int rank, const TokenSource& tokens);

/// The number of rows of `rank`, which must be in the group. O(spans).
[[nodiscard]] std::int64_t rows_of(const MicroBatch& micro_batch, HdpRank rank);

/// Tokens of the batch that have a next one: the loss is a mean over these.
[[nodiscard]] std::int64_t target_count(const Plan& plan);

}  // namespace hdpsim::kernels::exec
