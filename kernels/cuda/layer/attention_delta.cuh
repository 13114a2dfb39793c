#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/layer/vector.cuh"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cuda::layer {

inline constexpr unsigned delta_threads = 256;
/// Lanes that share a row of a head: one chunk each, or all lanes of a warp where a chunk is one element.
template <int count>
inline int delta_lanes(std::int64_t dim) {
  return std::min(warp_lanes, static_cast<int>(dim) / count);
}

/// Blocks (x, y): x takes rows, y is the head.
struct DeltaGrid {
  unsigned x = 1;
  unsigned y = 1;
};
inline DeltaGrid delta_grid(const AttentionDelta& op, int lanes, int multiprocessors) {
  const std::int64_t rows_of_block = delta_threads / static_cast<unsigned>(lanes);
  const std::int64_t all = (op.rows + rows_of_block - 1) / rows_of_block;
  const std::int64_t resident = (std::int64_t{multiprocessors} * 8 + op.heads.heads - 1) / op.heads.heads;
  return {static_cast<unsigned>(std::min(all, resident)), static_cast<unsigned>(op.heads.heads)};
}

/// AttentionDelta. `lanes` lanes per row; neighbours in a block have neighbouring rows of one head, so that they write
/// side by side. Bitwise deterministic.
template <int count>
__global__ void __launch_bounds__(delta_threads) attention_delta(const AttentionDelta op, int lanes) {
  const std::int64_t head = blockIdx.y;
  const std::int64_t rows_of_block = blockDim.x / static_cast<unsigned>(lanes);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  // All lanes of a warp stay in the loop together: indices behind the end are treated as the last row.
  for (std::int64_t begin = blockIdx.x * rows_of_block; begin < op.rows; begin += gridDim.x * rows_of_block) {
    const std::int64_t wanted = begin + static_cast<int>(threadIdx.x) / lanes;
    const std::int64_t row = wanted < op.rows ? wanted : op.rows - 1;
    const bf16* const o = static_cast<const bf16*>(op.o.data) + row * op.o.stride + head * op.heads.dim;
    const bf16* const d_o = static_cast<const bf16*>(op.d_o.data) + row * op.d_o.stride + head * op.heads.dim;
    float sum = 0;
    for (int i = lane * count; i < op.heads.dim; i += lanes * count) {
      const Chunk<count> a = load_chunk<count>(o + i);
      const Chunk<count> b = load_chunk<count>(d_o + i);
      for (int k = 0; k < count; ++k) sum += a.value[k] * b.value[k];
    }
    for (int mask = lanes / 2; mask > 0; mask /= 2) sum += ptx::shuffle_xor(sum, mask);
    if (lane == 0 && wanted < op.rows) op.delta[head * op.rows + row] = sum;
  }
}

}  // namespace hdpsim::kernels::cuda::layer
