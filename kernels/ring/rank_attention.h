#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// How far a token of a document sees: all tokens before it; itself and the window - 1 before it; or those before it in
/// its chunk, if documents are cut into chunks (see chunked_blocks()). At most one of both is set.
struct Reach {
  std::int64_t window = 0;
  std::int64_t chunk = 0;

  /// Whether some token of a document of so many does not see all tokens before it.
  [[nodiscard]] bool limits(std::int64_t tokens) const {
    return (window > 0 && tokens > window) || (chunk > 0 && tokens > chunk);
  }
  friend bool operator==(const Reach&, const Reach&) = default;
};

/// The causal blocks of whole documents, whose keys begin with the document's first one, as `reach` leaves them.
[[nodiscard]] std::vector<AttentionBlock> limited(std::vector<AttentionBlock> blocks, const Reach& reach);

/// Tensors of the backend's memory, dense, `rows` the rows that this rank holds:
///   q   element [rows, heads, dim]
///   kv  element [rows, kv_width()]: of a token the keys of all key-value heads, then their values. The buffer is sent
///       as it is.
///   o   element [rows, heads, value_width()], written
///   lse fp32 [heads, rows], natural logarithm over the keys of all ranks, written
/// sinks: as AttentionForward has them; null: none.
struct RingForward {
  const void* q = nullptr;
  const void* kv = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
  Reach reach = {};
  const float* sinks = nullptr;
};

/// o, lse: what forward wrote. d_o: element [rows, heads, value_width()]. d_q: fp32 [rows, heads, dim]; d_kv: fp32
/// [rows, kv_width()]; both are written. d_sinks: fp32 [heads], added to.
struct RingBackward {
  const void* q = nullptr;
  const void* kv = nullptr;
  const void* o = nullptr;
  const float* lse = nullptr;
  const void* d_o = nullptr;
  float* d_q = nullptr;
  float* d_kv = nullptr;
  bool deterministic = false;
  Reach reach = {};
  const float* sinks = nullptr;
  float* d_sinks = nullptr;
};

// Elements of a token in these tensors.
[[nodiscard]] inline std::int64_t query_width(const AttentionHeads& heads) {
  return heads.heads * heads.dim;
}
[[nodiscard]] inline std::int64_t output_width(const AttentionHeads& heads) {
  return heads.heads * heads.value_width();
}
[[nodiscard]] inline std::int64_t key_width(const AttentionHeads& heads) {
  return heads.kv_heads * heads.dim;
}
[[nodiscard]] inline std::int64_t kv_width(const AttentionHeads& heads) {
  return heads.kv_heads * (heads.dim + heads.value_width());
}

/// What a launch of a rank with so many rows needs besides its tensors.
struct RankLaunch {
  const AttentionHeads& heads;
  std::span<const AttentionBlock> blocks;
  std::int64_t rows = 0;
  Element element = Element::fp32;
};
/// Attention of the rank's queries to the rows of `kv`, its own or others'; without sinks.
[[nodiscard]] AttentionForward forward_launch(const RankLaunch& launch, const RingForward& op, const void* kv);
/// The gradients of the keys and values go to `d_kv`.
[[nodiscard]] AttentionBackward backward_launch(const RankLaunch& launch, const RingBackward& op, const void* kv,
                                                float* d_kv, const float* delta);
/// What every launch of a backward pass needs; and a gradient of zeros to which they add.
void begin_backward(Backend& backend, const AttentionHeads& heads, std::int64_t rows, const RingBackward& op,
                    float* delta);

}  // namespace hdpsim::kernels
