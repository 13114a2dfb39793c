#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/exec/tokens.h"
#include "kernels/ring/chunk_keys.h"
#include "kernels/ring/gathered_keys.h"
#include "kernels/ring/sharding.h"
#include "sim/model/group_sharing.h"
#include "sim/plan/plan.h"

namespace hdpsim::kernels::exec {

/// One rank's share of a micro-batch: the rows of its pieces of all spans that its group shares, as the plan cuts them,
/// then those of the spans that it holds alone; and its places among the ranks with which it shares attention
/// (GroupSharing).
struct Share {
  GroupSharing sharing;
  // The ring of parties; a rank alone is a party, too. Not used where keys are gathered.
  ShardedDocuments documents;  ///< The spans, cut over the parties.
  std::vector<int> members;    ///< Ranks of the transport, in the order of the ring.
  int position = 0;            ///< Index of the rank in `members`.
  /// The ranks that gather keys, their rows in the order of the spans, or those of a party that trade heads, their rows
  /// in the order in which `documents` has those of a party. Empty where neither is done.
  GroupRows together;
  GatheredKeys::Launches launches;  ///< Attention to gathered keys.
  // All ranks of the group, where tokens are mixed in linear time.
  ShardedDocuments cut{{}, 1};
  std::vector<int> group;         ///< Ranks of the transport, in the order of the group.
  int place = 0;                  ///< Index of the rank in `group`.
  ShardedDocuments local{{}, 1};  ///< Spans that the rank holds alone, on a ring of itself: `self`.
  std::vector<int> self;          ///< The rank alone.
  /// The place of a chunk in its sequence, if chunks of it run in order.
  std::optional<ChunkPlace> chunk = {};

  // One entry per row.
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;    ///< The next token of the sequence, on whichever rank; -1 for its last.
  std::vector<std::int32_t> positions;  ///< Position in the sequence, for rotary embeddings.

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(ids.size()); }
  /// The first row that the group does not share.
  [[nodiscard]] std::int64_t shared_rows() const { return rows() - local.rows(0); }
  /// Rows of which the rank computes attention, with its part of the heads.
  [[nodiscard]] std::int64_t attended_rows() const { return sharing.inner > 1 ? together.all() : rows(); }
};

/// The share of `rank`, which must be in the micro-batch's group. `sharing` is that of its group (Program::sharing).
/// O((spans + pieces) x ranks + rows).
[[nodiscard]] Share share_of(const Plan& plan, MicroBatchId id, int rank, const TokenSource& tokens,
                             const GroupSharing& sharing);
/// The same in a ring.
[[nodiscard]] inline Share share_of(const Plan& plan, MicroBatchId id, int rank, const TokenSource& tokens) {
  const auto ranks = static_cast<std::int64_t>(plan.micro_batches.at(id.index()).group.size());
  return share_of(plan, id, rank, tokens, {.parties = ranks});
}

/// The number of rows of `rank`, which must be in the group. O(spans + pieces).
[[nodiscard]] std::int64_t rows_of(const MicroBatch& micro_batch, HdpRank rank);

/// Tokens of the batch that have a next one: the loss is a mean over these.
[[nodiscard]] std::int64_t target_count(const Plan& plan);

}  // namespace hdpsim::kernels::exec
