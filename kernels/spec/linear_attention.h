#pragma once

#include <cstdint>
#include <span>

#include "kernels/spec/attention.h"

namespace hdpsim::kernels {

/// Heads of one launch of linear attention. Head h reads queries and keys of key head h / (heads / key_heads).
struct LinearHeads {
  std::int64_t heads = 0;      ///< Heads of values, decays, states and outputs.
  std::int64_t key_heads = 0;  ///< Heads of queries and keys; divides heads.
  std::int64_t key_dim = 0;    ///< Multiples of 32 up to 256.
  std::int64_t value_dim = 0;
};

/// Rows [begin, begin + tokens) of the packed tensors: one document, or the part of one. Documents share no row.
struct Document {
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
};

/// Documents are computed in chunks of so many tokens, the last one shorter.
inline constexpr std::int64_t linear_chunk = 64;

/// Chunks of all documents of a launch.
[[nodiscard]] std::int64_t linear_chunks(std::span<const Document> documents);

/// Gated linear attention (Yang et al. 2024), which with one decay for each token and head is also Mamba-2's and, with
/// the same decay for all tokens, lightning attention's: every head carries a state S of key_dim x value_dim through
/// its document,
///   S_t = exp(log_decay_t) S_(t-1) + k_t^T v_t,   o_t = q_t S_t.
/// There is no delta rule. Scale q before.
///
/// Elements of q, k, v, o: the backend's. log_decay: fp32 [heads, stride], not above 0. States are fp32 [key_dim,
/// value_dim] each: initial and final_states [documents, heads], null for zero and for not wanted; chunk_states [heads,
/// linear_chunks()], the state before every chunk, documents in their order: what backward needs, null if there is
/// none.
///
/// Work for each token and head: 2 chunk (key_dim + value_dim) within its chunk, half of which is under the mask, and
/// 4 key_dim value_dim for the state: linear in the length of a document.
struct LinearAttentionForward {
  LinearHeads heads;
  std::span<const Document> documents;
  Rows<const void> q, k, v;
  const float* log_decay = nullptr;
  std::int64_t decay_stride = 0;
  Rows<void> o;
  const float* initial = nullptr;
  float* final_states = nullptr;
  float* chunk_states = nullptr;
};

/// Backward. d_final: the gradient of final_states, null for zero. All gradients are fp32 and are added to, but
/// d_initial, which is written where it is not null. With dS the gradient of S_t:
///   dS_t = q_t^T dO_t + exp(log_decay_(t+1)) dS_(t+1),  dq_t = dO_t S_t^T,  dk_t = v_t dS_t^T,  dv_t = k_t dS_t,
///   d log_decay_t = exp(log_decay_t) <dS_t, S_(t-1)>.
/// Work: 2.5 times that of forward within a chunk, and twice that for the state.
struct LinearAttentionBackward {
  LinearHeads heads;
  std::span<const Document> documents;
  Rows<const void> q, k, v, d_o;
  const float* log_decay = nullptr;
  std::int64_t decay_stride = 0;
  const float* chunk_states = nullptr;  ///< As forward left them.
  const float* d_final = nullptr;
  Rows<float> d_q, d_k, d_v;
  float* d_log_decay = nullptr;  ///< [heads, decay_stride]
  float* d_initial = nullptr;
};

/// UnsupportedInput if heads or documents violate the requirements above.
void require_valid(const LinearHeads& heads, std::span<const Document> documents);

}  // namespace hdpsim::kernels
