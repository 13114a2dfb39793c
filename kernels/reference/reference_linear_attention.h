#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/linear_attention.h"

namespace hdpsim::kernels::reference {

/// Dense packed tensors: q and k [rows, key_heads, key_dim], v [rows, heads, value_dim], log_decay [heads, rows],
/// initial [documents, heads, key_dim, value_dim], empty for zero. Any widths.
struct LinearAttentionInput {
  LinearHeads heads;
  std::span<const Document> documents;
  std::span<const double> q, k, v, log_decay;
  std::span<const double> initial = {};

  [[nodiscard]] std::int64_t rows() const {
    return static_cast<std::int64_t>(q.size()) / (heads.key_heads * heads.key_dim);
  }
};

/// o: shaped as v. final_states: [documents, heads, key_dim, value_dim].
struct LinearAttentionResult {
  std::vector<double> o, final_states;
};

/// Shaped as what they are gradients of; d_initial [documents, heads, key_dim, value_dim] in any case.
struct LinearAttentionGradients {
  std::vector<double> d_q, d_k, d_v, d_log_decay, d_initial;
};

/// Token by token: S_t = exp(log_decay_t) S_(t-1) + k_t^T v_t, o_t = q_t S_t.
[[nodiscard]] LinearAttentionResult linear_attention_forward(const LinearAttentionInput& input);

/// From the last token to the first, see LinearAttentionBackward. d_final: as final_states, empty for zero.
[[nodiscard]] LinearAttentionGradients linear_attention_backward(const LinearAttentionInput& input,
                                                                 std::span<const double> d_o,
                                                                 std::span<const double> d_final = {});

}  // namespace hdpsim::kernels::reference
