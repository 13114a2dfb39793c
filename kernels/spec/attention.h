#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hdpsim::kernels {

enum class Mask { causal, full };

/// The part of one document in one launch: query rows [query_begin, query_begin + queries) against key rows [key_begin,
/// key_begin + keys) of the packed tensors. A full mask shows every query all keys of the block.
///
/// A causal mask counts tokens of the document, one after another on either side. The last query stands `lead` tokens
/// behind the last key: at zero, as in a block of a whole document, they are the same token; a step of a ring whose
/// keys come earlier has a positive lead. Query i of the block thus stands at key i + keys - queries + lead, which need
/// not be in the block. It sees the keys up to that one and, under a window w, none but the last w of these: itself and
/// the w - 1 tokens before it. Chunked attention needs no mask of its own, see chunked_blocks().
///
/// The blocks of one launch share no query row and no key row. A block may be empty on either side.
struct AttentionBlock {
  std::int64_t query_begin = 0;
  std::int64_t queries = 0;
  std::int64_t key_begin = 0;
  std::int64_t keys = 0;
  Mask mask = Mask::full;
  std::int64_t window = 0;  ///< 0: none. Only a causal mask has one, and a lead.
  std::int64_t lead = 0;
  friend bool operator==(const AttentionBlock&, const AttentionBlock&) = default;
};

/// Keys [begin, end) of a block, counted from its first.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

/// The keys that query `query` of the block sees; begin = end where it sees none. The one statement of the masks; what
/// kernels compute instead for whole tiles is tested against it.
[[nodiscard]] KeyRange seen_keys(const AttentionBlock& block, std::int64_t query);

/// Chunked attention (Llama 4): a document is cut into chunks of `chunk` tokens, the last one shorter, and a token sees
/// those before it in its chunk. The parts of a causal block without a window that have both queries and keys in one
/// chunk are causal blocks; these are returned, in the order of the document. `first_key` is the position in its
/// document of the block's first key. Queries whose chunk has no key in the block are in a block without keys, so that
/// every query row is in one.
[[nodiscard]] std::vector<AttentionBlock> chunked_blocks(const AttentionBlock& block, std::int64_t chunk,
                                                         std::int64_t first_key = 0);

/// Heads of one launch. Query head h reads key-value head h / (heads / kv_heads) (grouped-query attention).
struct AttentionHeads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;   ///< Divides heads.
  std::int64_t dim = 0;        ///< Width of queries and keys: 64, 128 or 256; 192 where values are 128 wide.
  float scale = 0;             ///< Factor of the scores before the softmax; usually 1 / sqrt(dim).
  std::int64_t value_dim = 0;  ///< Width of values and outputs; 0: dim. 192 and 128 are multi-head latent attention's.

  [[nodiscard]] std::int64_t value_width() const { return value_dim > 0 ? value_dim : dim; }
};

/// A packed tensor [rows, row_stride]: the heads of one token lie side by side, dim elements each (of v, o and their
/// gradients value_width()), and the next token follows row_stride elements later (more than heads x dim in a fused QKV
/// tensor).
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
/// sinks: a learned score for each head that takes part in the softmax as a key without a value would (gpt-oss): LSE =
/// log(exp(sink) + sum exp(scale q k)). It is not scaled. A row without any key then has LSE = sink and O = 0. Of
/// launches that accumulate into one result a single one has the sinks.
///
/// Work: 2 heads (dim + value width) area. Traffic: q, k, v, o once; k and v again for every tile of queries that
/// misses the cache.
struct AttentionForward {
  AttentionHeads heads;
  std::span<const AttentionBlock> blocks;
  Rows<const void> q, k, v;
  Rows<void> o;
  float* lse = nullptr;
  std::int64_t lse_stride = 0;
  bool accumulate = false;
  const float* sinks = nullptr;  ///< fp32 [heads]; null: none.
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
/// sinks: their part of LSE is already there, and delta has no part of theirs, so that nothing changes for the other
/// gradients. Given the sinks of forward, d_sinks[head] -= sum over the query rows of all blocks of
/// exp(sink - LSE) delta; of the launches of a ring a single one, whose blocks have all query rows, has both pointers.
///
/// deterministic: the same input gives the same bits, for somewhat more time.
/// Work: 2 heads (3 dim + 2 value width) area: five products, of which forward has two.
struct AttentionBackward {
  AttentionHeads heads;
  std::span<const AttentionBlock> blocks;
  Rows<const void> q, k, v, d_o;
  const float* lse = nullptr;
  const float* delta = nullptr;
  std::int64_t lse_stride = 0;
  Rows<float> d_q, d_k, d_v;
  bool deterministic = false;
  const float* sinks = nullptr;  ///< fp32 [heads], as is d_sinks; null: none.
  float* d_sinks = nullptr;
};

/// (query, key) pairs under the mask.
[[nodiscard]] std::int64_t mask_area(const AttentionBlock& block);
[[nodiscard]] std::int64_t mask_area(std::span<const AttentionBlock> blocks);

/// UnsupportedInput if heads or blocks violate the requirements above (widths of heads other than those
/// named, kv_heads that do not divide heads, rows that overlap, negative sizes, a window or a lead without a causal
/// mask).
void require_valid(const AttentionHeads& heads, std::span<const AttentionBlock> blocks);

}  // namespace hdpsim::kernels
