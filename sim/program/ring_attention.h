#pragma once

#include "sim/model/operation.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The attention launches of one rank of a zigzag ring of N over all spans of a micro-batch. Zigzag gives every rank
/// the same area, so one pair of launches stands for all ranks and steps:
///   own   the rank's own 2 parts of every span against themselves: causal over L / N tokens;
///   step  keys and values of another rank: all queries against half the keys, or half the queries against all keys,
/// both
///         half a full square (L / N) x (L / 2N), no mask.
/// A span shorter than N leaves ranks without a token of it: its blocks then count with the share of ranks (own) or of
/// pairs of ranks (step) that have one. Blocks of equal length are stated once.
struct RingAttention {
  Attention own;
  Attention step;  ///< No blocks if N is 1.
};

/// Per device of a tensor-parallel group of `tp`. O(spans log spans).
[[nodiscard]] RingAttention ring_attention(const MicroBatch& micro_batch, const Transformer& model, std::int64_t tp,
                                           Direction direction);

}  // namespace hdpsim
