#pragma once

#include <cstdint>
#include <optional>

#include "sim/model/group_sharing.h"
#include "sim/model/operation.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The attention launches of one rank in a zigzag ring of N ranks, over all spans (of length L) that the group of a
/// micro-batch shares and cuts per document; uneven_attention.h has those of other cuts, local_attention.h those of
/// spans that one rank holds alone. Zigzag gives every rank the same area, so that one
/// pair of launches represents all ranks and steps:
///   own   the rank's own 2 parts of every span against themselves: causal over L / N tokens;
///   step  the keys and values of another rank: all queries against half of the keys, or half of the queries against
///         all keys. Both are half of a full square, (L / N) x (L / 2N), without a mask.
/// If a span is shorter than N tokens, some ranks have no token of it: its blocks then count with the share of ranks
/// (own) or of pairs of ranks (step) that have one. Blocks of equal length are merged.
///
/// Where ranks trade tokens for heads, a party of GroupSharing stands for a rank: it has the tokens of its ranks, each
/// of which has a part of the heads.
///
/// Where tokens see fewer than their whole span (Layer::window, attention_chunk), a rank needs the keys and values of
/// the tokens before each of its two parts, its halo, in place of all others: `own` is then its parts against
/// themselves, and `step` the rest of the mean rank's area, which the halo brings at once. If parts are shorter than
/// the window, the halo comes from further ranks than the neighbours, which is not told apart.
///
/// Where an indexer chooses the keys of a query, `scores` is the launch that scores all of them forward, and in
/// backward has the gradients of the chosen ones; `own` has the chosen pairs.
///
/// `own` of a chunk (MicroBatch::continues) is on one rank, with the keys of the chunks before it.
struct RingAttention {
  Attention own;
  Attention step;                         ///< No blocks if N is 1.
  std::optional<std::int64_t> halo = {};  ///< Tokens; empty: the keys and values of all ranks pass by.
  std::optional<Attention> scores = {};   ///< Of a layer that scores keys.
  /// In its backward: the scores of attention itself, of all heads, from which the indexer learns (DeepSeek-AI 2025,
  /// eq. 4).
  std::optional<Attention> target = {};
};

/// A launch without blocks, with the heads of a device: of a rank, or of its part of a party's.
[[nodiscard]] Attention empty_launch(const Transformer& model, std::int64_t tp, const GroupSharing& sharing,
                                     Direction direction);

/// Per device of a tensor-parallel group of `tp`. `sharing` is that of the micro-batch's group. Queries must not choose
/// keys in a group of several (checked): which ones are chosen is known when all are there. O(spans log spans).
[[nodiscard]] RingAttention ring_attention(const MicroBatch& micro_batch, const Transformer& model, std::int64_t tp,
                                           const GroupSharing& sharing, Direction direction);
/// The same where ranks have gathered all keys: `own` is all of it, N - 1 steps in one launch.
[[nodiscard]] RingAttention gathered_attention(const MicroBatch& micro_batch, const Transformer& model, std::int64_t tp,
                                               Direction direction);

}  // namespace hdpsim
