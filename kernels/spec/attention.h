#pragma once

#include <cstdint>
#include <span>

namespace hdpsim::kernels {

enum class Mask { causal, full };

/// The part of one document in one launch: query rows [query_begin, query_begin + queries) against key rows [key_begin,
/// key_begin + keys) of the packed tensors. A causal mask is aligned to the bottom right: query i of the block sees
/// keys 0 ... i + keys - queries.
///
/// The blocks of one launch share no query row and no key row. A block may be empty on either side.
struct AttentionBlock {
  std::int64_t query_begin = 0;
  std::int64_t queries = 0;
  std::int64_t key_begin = 0;
  std::int64_t keys = 0;
  Mask mask = Mask::full;
  friend bool operator==(const AttentionBlock&, const AttentionBlock&) = default;
};

/// Heads of one launch. Query head h reads key-value head h / (heads / kv_heads) (grouped-query attention).
struct AttentionHeads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< Divides heads.
  std::int64_t dim = 0;       ///< 64 or 128.
  float scale = 0;            ///< Factor of the scores before the softmax; usually 1 / sqrt(dim).
};

/// A packed tensor [rows, row_stride]: the heads of one token lie side by side, head_dim elements each, and the next
/// token follows row_stride elements later (more than heads x dim in a fused QKV tensor).
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;  ///< In elements.
};

/// Forward: O = softmax(scale Q K^T + mask) V and LSE = log sum exp, natural logarithm.
///
/// Element type of q, k, v: the backend's (fp32 on CPUs, bf16 on GPUs, accumulated in fp32). o is fp32 where
/// `accumulate` is set, else the backend's element. lse: fp32 [heads, lse_stride], lse_stride the number of query rows
/// of the packed tensor. Rows of a block without any key: LSE = -inf, O = 0. Rows of no block are not touched.
///
/// accumulate: o and lse hold the result over other keys (o = 0, lse = -inf where there are none yet) and receive the
/// result over both: with m = max(lse, lse'), lse'' = m + log(exp(lse - m) + exp(lse' - m)) and
/// o'' = o exp(lse - lse'') + o' exp(lse' - lse'').
///
/// Work: 4 heads dim area. Traffic: q, k, v, o once; k and v again for every tile of queries that misses the cache.
struct AttentionForward {
  AttentionHeads heads;
  std::span<const AttentionBlock> blocks;
  Rows<const void> q, k, v;
  Rows<void> o;
  float* lse = nullptr;
  std::int64_t lse_stride = 0;
  bool accumulate = false;
};

/// delta = rowsum(dO o O), fp32 [heads, rows]; computed once for all backward launches of a ring. o and d_o have the
/// backend's element type.
struct AttentionDelta {
  AttentionHeads heads;
  std::int64_t rows = 0;
  Rows<const void> o, d_o;
  float* delta = nullptr;
};

/// Backward, with the LSE of the whole row (all ring steps): P = exp(scale Q K^T - LSE), dV += P^T dO,
/// dS = P o (dO V^T - delta), dQ += scale dS K, dK += scale dS^T Q. Gradients are fp32 and are added to, so that ring
/// steps need no order. q, k, v, d_o: the backend's element. lse and delta: fp32 [heads, lse_stride].
///
/// deterministic: the same input gives the same bits, for somewhat more time.
/// Work: 10 heads dim area (five products of which forward has two).
struct AttentionBackward {
  AttentionHeads heads;
  std::span<const AttentionBlock> blocks;
  Rows<const void> q, k, v, d_o;
  const float* lse = nullptr;
  const float* delta = nullptr;
  std::int64_t lse_stride = 0;
  Rows<float> d_q, d_k, d_v;
  bool deterministic = false;
};

/// (query, key) pairs under the mask.
[[nodiscard]] std::int64_t mask_area(const AttentionBlock& block);
[[nodiscard]] std::int64_t mask_area(std::span<const AttentionBlock> blocks);

/// UnsupportedInput if heads, strides or blocks violate the requirements above (head dimensions other than 64 and 128,
/// kv_heads that do not divide heads, rows that overlap, negative sizes).
void require_valid(const AttentionHeads& heads, std::span<const AttentionBlock> blocks);

}  // namespace hdpsim::kernels
