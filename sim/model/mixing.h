#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// Exact number of (query, key) pairs of a causal mask over one sequence: s (s + 1) / 2.
[[nodiscard]] std::int64_t causal_area(std::int64_t tokens);
/// The same, of sequences of any length.
[[nodiscard]] inline double causal_pairs(std::int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return count * (count + 1) / 2;
}
/// The (query, key) pairs that a layer's attention computes of one sequence: causal, within its window or its chunks,
/// or those that its indexer chooses. 0 for a layer without attention.
[[nodiscard]] double attention_area(const Layer& layer, std::int64_t tokens);
/// The same pairs as blocks of one launch: of a window, a triangle and the square blocks of the band behind it. Chosen
/// keys are as many as those of a window.
[[nodiscard]] std::vector<AttentionBlock> attention_blocks(const Layer& layer, std::int64_t tokens);
/// How many tokens back a token sees at most, itself included; 0: up to the first.
[[nodiscard]] std::int64_t attention_reach(const Layer& layer);
/// The tokens that a token sees at most: those within its reach, or as many as its indexer chooses; 0: all before it.
[[nodiscard]] std::int64_t most_keys(const Layer& layer);

/// FLOPs of attention scores and values over an area of the mask, all heads of one layer: forward 2 h (d_k + d_v) area,
/// backward 2.5 x that (five matrix products instead of two).
[[nodiscard]] Flops attention_flops(const Layer& layer, double area, Direction direction);
/// FLOPs of the scores by which a layer's indexer chooses the keys of one sequence: 2 h d for all pairs forward, and
/// three times that for the chosen ones in backward, where these scores are computed again and have two gradients. 0
/// without an indexer.
[[nodiscard]] Flops indexer_flops(const Layer& layer, std::int64_t tokens, Direction direction);

/// The matrix products of one layer's linear mixing for `tokens` tokens, with the heads cut over `tp` devices; a chunk
/// of c tokens of a head takes
///   scores              c x key_dim  times  key_dim x c      (once for heads that share a key)
///   values              c x c        times  c x value_dim
///   values of the state c x key_dim  times  key_dim x value_dim
///   the state           key_dim x c  times  c x value_dim
/// and under the delta rule (Yang et al. 2024, section 3.2) the scores of keys, the inverse of a triangle of c x c, its
/// products with keys and values, and what the state held. Empty for a scan. Backward has two products for each.
[[nodiscard]] std::vector<Gemm> mixing_products(const LinearMixing& mixing, std::int64_t tokens, std::int64_t tp);
/// Those of them that backward of the delta rule computes again first: of the triangle with keys and values, the states
/// and what they held (flash-linear-attention, fla/ops/gated_delta_rule/chunk.py, chunk_gated_delta_rule_bwd:
/// recompute_w_u_fwd, chunk_gated_delta_rule_fwd_h). Empty without it.
[[nodiscard]] std::vector<Gemm> products_again(const LinearMixing& mixing, std::int64_t tokens, std::int64_t tp);
/// The state that a layer hands from token to token, on one device, in fp32.
[[nodiscard]] Bytes state_bytes(const LinearMixing& mixing, std::int64_t tp);

}  // namespace hdpsim
