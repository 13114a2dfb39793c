#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/attention.h"

/// The definition of correct results: fp64, as plain as the formulas, without regard for speed.
namespace hdpsim::kernels::reference {

/// Dense packed tensors: q [query rows, heads, dim], k [key rows, kv_heads, dim], v [key rows, kv_heads, value width];
/// any widths. Rows outside all blocks take no part in attention.
struct AttentionInput {
  AttentionHeads heads;
  std::span<const AttentionBlock> blocks;
  std::span<const double> q, k, v;
  std::span<const double> sinks = {};  ///< [heads]; empty: none.

  [[nodiscard]] std::int64_t query_rows() const {
    return static_cast<std::int64_t>(q.size()) / (heads.heads * heads.dim);
  }
  [[nodiscard]] std::int64_t key_rows() const {
    return static_cast<std::int64_t>(k.size()) / (heads.kv_heads * heads.dim);
  }
};

/// o: [query rows, heads, value width]; lse: [heads, query rows]. Rows that see no key, for whatever reason: o = 0, lse
/// = -inf, or the sink where they are in a block and there are sinks.
struct AttentionResult {
  std::vector<double> o, lse;
};

/// Shaped as q, k, v and sinks.
struct AttentionGradients {
  std::vector<double> d_q, d_k, d_v;
  std::vector<double> d_sinks = {};
};

/// O = softmax(scale Q K^T + mask) V, LSE = log sum exp(scale Q K^T + mask); sinks are one more score of every row,
/// whose value is zero.
[[nodiscard]] AttentionResult attention_forward(const AttentionInput& input);

/// delta = rowsum(dO o O): [heads, query rows].
[[nodiscard]] std::vector<double> attention_delta(const AttentionHeads& heads, std::span<const double> o,
                                                  std::span<const double> d_o);

/// lse and delta are [heads, query rows] of the whole row, also if `input` holds only a part of its keys. P = exp(scale
/// Q K^T - LSE), dV = P^T dO, dS = P o (dO V^T - delta), dQ = scale dS K, dK = scale dS^T Q, and for sinks, whose dO
/// V^T is zero, dS = -exp(sink - LSE) delta, summed over rows.
[[nodiscard]] AttentionGradients attention_backward(const AttentionInput& input, std::span<const double> d_o,
                                                    std::span<const double> lse, std::span<const double> delta);

/// `into` over some keys and `other` over different ones become the result over both: with m = max(lse, lse'),
/// lse'' = m + log(exp(lse - m) + exp(lse' - m)), o'' = o exp(lse - lse'') + o' exp(lse' - lse'').
/// lse = -inf is the neutral element.
void merge(const AttentionHeads& heads, AttentionResult& into, const AttentionResult& other);

}  // namespace hdpsim::kernels::reference
