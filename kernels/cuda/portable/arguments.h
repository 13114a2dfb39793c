#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/bf16.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/error.h"

/// The arguments of the portable kernels, and how they follow from a caller's operation. Plain C++.
namespace hdpsim::kernels::cuda::portable {

/// Tiles and heads of one launch, longest first, for whichever thread block is free: fewer blocks than items run, so
/// that multiprocessors may be left alone, and a short last item ends each block.
struct WorkQueue {
  int* taken = nullptr;  ///< Items taken beyond the first of each block: 0 at first.
  const AttentionTile* tiles = nullptr;
  TileOrder order;
};

struct ForwardArguments {
  WorkQueue queue;  ///< Query tiles; heads are query heads.
  const bf16* q = nullptr;
  const bf16* k = nullptr;
  const bf16* v = nullptr;
  void* o = nullptr;  ///< fp32 where the kernel accumulates, else bf16.
  float* lse = nullptr;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, o_stride = 0, lse_stride = 0;
  std::int32_t heads_per_kv_head = 1;
  float scale_log2 = 0;  ///< scale log2 e, positive.
};

struct BackwardArguments {
  /// Key tiles; heads are key-value heads times `parts`. For the query gradient alone: query tiles and heads.
  WorkQueue queue;
  const bf16* q = nullptr;
  const bf16* k = nullptr;
  const bf16* v = nullptr;
  const bf16* d_o = nullptr;
  const float* lse = nullptr;
  const float* delta = nullptr;
  float* d_q = nullptr;
  float* d_k = nullptr;
  float* d_v = nullptr;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, d_o_stride = 0, lse_stride = 0;
  std::int64_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
  std::int32_t parts = 1;           ///< Parts in which the query heads of one key-value head are computed.
  std::int32_t heads_per_part = 1;  ///< Query heads per part.
  float scale = 0;
  float scale_log2 = 0;  ///< scale log2 e
};

inline constexpr float log2_of_e = 1.44269504088896341F;

/// The bytes of a staged work queue: its counter, then its tiles.
[[nodiscard]] inline std::vector<std::byte> queue_image(std::span<const AttentionTile> tiles) {
  std::vector<std::byte> image(sizeof(AttentionTile) + tiles.size_bytes());
  if (!tiles.empty()) std::memcpy(image.data() + sizeof(AttentionTile), tiles.data(), tiles.size_bytes());
  return image;
}
/// The queue whose image lies at `image`. The counter is written although staged memory is constant for everything
/// else.
[[nodiscard]] inline WorkQueue queue_at(const void* image, const TileOrder& order) {
  const auto* tiles = static_cast<const AttentionTile*>(image) + 1;
  return {.taken = static_cast<int*>(const_cast<void*>(image)), .tiles = tiles, .order = order};
}

/// UnsupportedInput unless rows begin at multiples of `elements` elements of `tensor`, which the copies of the kernels
/// need.
template <class T>
void require_aligned(const Rows<T>& tensor, std::int64_t elements, std::size_t element_bytes, const char* what) {
  const auto bytes = static_cast<std::uintptr_t>(elements) * element_bytes;
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % bytes != 0 || tensor.stride % elements != 0)
    throw UnsupportedInput(what);
}

/// UnsupportedInput for what attention may have and no kernel for GPUs computes, forward or backward.
template <class Operation>
void require_known(const Operation& op) {
  if (op.sinks != nullptr) throw UnsupportedInput("attention: kernels for GPUs know no sinks yet");
  if (op.heads.value_width() != op.heads.dim || (op.heads.dim != 64 && op.heads.dim != 128)) {
    throw UnsupportedInput("attention: kernels for GPUs know heads of 64 and 128 alone, with values as wide as keys");
  }
}

[[nodiscard]] inline ForwardArguments forward_arguments(const AttentionForward& op, const WorkQueue& queue) {
  require_known(op);
  if (!(op.heads.scale > 0)) throw UnsupportedInput("attention: the scale of the scores must be positive");
  require_aligned(op.q, 8, sizeof(bf16), "attention: rows of q must begin at multiples of 16 bytes");
  require_aligned(op.k, 8, sizeof(bf16), "attention: rows of k must begin at multiples of 16 bytes");
  require_aligned(op.v, 8, sizeof(bf16), "attention: rows of v must begin at multiples of 16 bytes");
  if (op.accumulate) {
    require_aligned(op.o, 2, sizeof(float), "attention: rows of o must begin at multiples of 8 bytes");
  } else {
    require_aligned(op.o, 8, sizeof(bf16), "attention: rows of o must begin at multiples of 16 bytes");
  }
  return {.queue = queue,
          .q = static_cast<const bf16*>(op.q.data),
          .k = static_cast<const bf16*>(op.k.data),
          .v = static_cast<const bf16*>(op.v.data),
          .o = op.o.data,
          .lse = op.lse,
          .q_stride = op.q.stride,
          .k_stride = op.k.stride,
          .v_stride = op.v.stride,
          .o_stride = op.o.stride,
          .lse_stride = op.lse_stride,
          .heads_per_kv_head = static_cast<std::int32_t>(op.heads.heads / op.heads.kv_heads),
          .scale_log2 = op.heads.scale * log2_of_e};
}

/// Arguments without a queue. `parts` divides the query heads of a key-value head.
[[nodiscard]] inline BackwardArguments backward_arguments(const AttentionBackward& op, std::int64_t parts) {
  require_known(op);
  require_aligned(op.q, 8, sizeof(bf16), "attention: rows of q must begin at multiples of 16 bytes");
  require_aligned(op.k, 8, sizeof(bf16), "attention: rows of k must begin at multiples of 16 bytes");
  require_aligned(op.v, 8, sizeof(bf16), "attention: rows of v must begin at multiples of 16 bytes");
  require_aligned(op.d_o, 8, sizeof(bf16), "attention: rows of d_o must begin at multiples of 16 bytes");
  require_aligned(op.d_q, 2, sizeof(float), "attention: rows of d_q must begin at multiples of 8 bytes");
  require_aligned(op.d_k, 2, sizeof(float), "attention: rows of d_k must begin at multiples of 8 bytes");
  require_aligned(op.d_v, 2, sizeof(float), "attention: rows of d_v must begin at multiples of 8 bytes");
  return {.queue = {},
          .q = static_cast<const bf16*>(op.q.data),
          .k = static_cast<const bf16*>(op.k.data),
          .v = static_cast<const bf16*>(op.v.data),
          .d_o = static_cast<const bf16*>(op.d_o.data),
          .lse = op.lse,
          .delta = op.delta,
          .d_q = op.d_q.data,
          .d_k = op.d_k.data,
          .d_v = op.d_v.data,
          .q_stride = op.q.stride,
          .k_stride = op.k.stride,
          .v_stride = op.v.stride,
          .d_o_stride = op.d_o.stride,
          .lse_stride = op.lse_stride,
          .d_q_stride = op.d_q.stride,
          .d_k_stride = op.d_k.stride,
          .d_v_stride = op.d_v.stride,
          .parts = static_cast<std::int32_t>(parts),
          .heads_per_part = static_cast<std::int32_t>(op.heads.heads / op.heads.kv_heads / parts),
          .scale = op.heads.scale,
          .scale_log2 = op.heads.scale * log2_of_e};
}

}  // namespace hdpsim::kernels::cuda::portable
