#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/layer/vector.cuh"
#include "kernels/spec/layer.h"

namespace hdpsim::kernels::cuda::layer {

/// A block holds a row, each thread some chunks of it in registers: a row is read once. Fewer elements where they come
/// one by one, for then they take more registers.
inline constexpr int most_row_threads = 512;
constexpr int row_elements_per_thread(int count) {
  return count == 8 ? 32 : 16;
}
constexpr std::int64_t widest_row(int count) {
  return std::int64_t{row_elements_per_thread(count)} * most_row_threads;
}
inline unsigned row_threads(std::int64_t width, int count) {
  const std::int64_t threads = (width + row_elements_per_thread(count) - 1) / row_elements_per_thread(count);
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + warp_lanes - 1) / warp_lanes) * warp_lanes);
}
/// Threads that a multiprocessor holds, by the registers of the kernels.
inline constexpr int forward_resident_threads = 1024;
inline constexpr int backward_resident_threads = 512;
/// Blocks of a kernel whose blocks each process one row after another.
inline unsigned row_blocks(std::int64_t tokens, unsigned threads, int multiprocessors, int resident) {
  const std::int64_t blocks = std::int64_t{multiprocessors} * std::max(1, resident / static_cast<int>(threads));
  return static_cast<unsigned>(std::min(blocks, tokens));
}

/// One float per warp, twice: the sums of two rows are under way.
inline constexpr std::size_t row_shared_bytes = 2 * most_row_threads / warp_lanes * sizeof(float);

/// One row: thread t holds the chunks t, t + threads, ... of it.
template <int count>
struct RowPart {
  static constexpr int chunks = row_elements_per_thread(count) / count;
  Chunk<count> chunk[chunks];

  /// Visits (chunk number, first column) of the thread's part of a row of `width`.
  template <class Visit>
  static __device__ __forceinline__ void each(std::int64_t width, Visit visit) {
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      const std::int64_t column = (static_cast<std::int64_t>(i) * blockDim.x + threadIdx.x) * count;
      if (column < width) visit(i, column);
    }
  }
};

/// RmsNormForward. A block per row, and further rows after it: the row is read once and kept in registers.
/// Accuracy: fp32 throughout, y rounded once. The sum of squares has a fixed order: bitwise deterministic.
template <int count>
__global__ void __launch_bounds__(most_row_threads) rms_norm_forward(const RmsNormForward op) {
  using Part = RowPart<count>;
  auto* const partial = reinterpret_cast<float*>(ptx::dynamic_shared());
  int turn = 0;
  for (std::int64_t token = blockIdx.x; token < op.tokens; token += gridDim.x) {
    const bf16* const x = static_cast<const bf16*>(op.x) + token * op.width;
    bf16* const y = static_cast<bf16*>(op.y) + token * op.width;
    Part row;
    float squares = 0;
    Part::each(op.width, [&](int i, std::int64_t column) {
      row.chunk[i] = load_chunk<count>(x + column);
      for (const float value : row.chunk[i].value) squares += value * value;
    });
    squares = block_sum(squares, partial + turn * (most_row_threads / warp_lanes));
    turn ^= 1;
    const float inverse_rms = ptx::reciprocal_sqrt(squares / static_cast<float>(op.width) + op.epsilon);
    Part::each(op.width, [&](int i, std::int64_t column) {
      const Chunk<count> weight = load_chunk<count>(static_cast<const bf16*>(op.weight) + column);
      Chunk<count> result;
      for (int k = 0; k < count; ++k) result.value[k] = row.chunk[i].value[k] * inverse_rms * weight.value[k];
      store_chunk(y + column, result);
    });
    if (threadIdx.x == 0) op.inverse_rms[token] = inverse_rms;
  }
}

/// d_x of RmsNormBackward, and of d_weight the sum over the rows of each block, into partial_d_weight [blocks, width]:
/// a thread has the same columns in every row, so it adds in registers.
template <int count>
__global__ void __launch_bounds__(most_row_threads)
    rms_norm_backward(const RmsNormBackward op, float* partial_d_weight) {
  using Part = RowPart<count>;
  auto* const partial = reinterpret_cast<float*>(ptx::dynamic_shared());
  int turn = 0;
  Part d_weight{};
  for (std::int64_t token = blockIdx.x; token < op.tokens; token += gridDim.x) {
    const bf16* const x = static_cast<const bf16*>(op.x) + token * op.width;
    const bf16* const d_y = static_cast<const bf16*>(op.d_y) + token * op.width;
    bf16* const d_x = static_cast<bf16*>(op.d_x) + token * op.width;
    const float r = op.inverse_rms[token];
    const auto* const weights = static_cast<const bf16*>(op.weight);
    // Kept in their storage format: in fp32 both rows would not fit the registers.
    Packed<count> kept_x[Part::chunks];
    Packed<count> kept_d_y[Part::chunks];
    float dot = 0;
    Part::each(op.width, [&](int i, std::int64_t column) {
      kept_x[i] = load_packed<count>(x + column);
      kept_d_y[i] = load_packed<count>(d_y + column);
      const Chunk<count> value = unpack(kept_x[i]);
      const Chunk<count> gradient = unpack(kept_d_y[i]);
      const Chunk<count> weight = load_chunk<count>(weights + column);
      for (int k = 0; k < count; ++k) dot += gradient.value[k] * weight.value[k] * value.value[k];
    });
    dot = block_sum(dot, partial + turn * (most_row_threads / warp_lanes));
    turn ^= 1;
    const float towards_x = r * r * r * dot / static_cast<float>(op.width);
    Part::each(op.width, [&](int i, std::int64_t column) {
      const Chunk<count> value = unpack(kept_x[i]);
      const Chunk<count> gradient = unpack(kept_d_y[i]);
      const Chunk<count> weight = load_chunk<count>(weights + column);
      Chunk<count> result;
      for (int k = 0; k < count; ++k) {
        d_weight.chunk[i].value[k] += gradient.value[k] * value.value[k] * r;
        result.value[k] = r * gradient.value[k] * weight.value[k] - value.value[k] * towards_x;
      }
      store_chunk(d_x + column, result);
    });
  }
  Part::each(op.width, [&](int i, std::int64_t column) {
    store_chunk(partial_d_weight + blockIdx.x * op.width + column, d_weight.chunk[i]);
  });
}

inline constexpr unsigned column_shares = 16;
inline constexpr std::size_t column_sum_shared_bytes = column_shares * warp_lanes * sizeof(float);

/// sum[c] += sum over rows of partial[row, c], partial: [rows, width]. A block of 32 x `shares` threads has 32 columns,
/// of which each thread adds up its share of the rows; the order of additions is fixed.
template <unsigned shares>
__global__ void __launch_bounds__(warp_lanes* shares)
    add_column_sums(const float* partial, std::int64_t rows, std::int64_t width, float* sum) {
  auto* const sums = reinterpret_cast<float*>(ptx::dynamic_shared());
  const unsigned lane = threadIdx.x % warp_lanes;
  const unsigned share = threadIdx.x / warp_lanes;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp_lanes + lane;
  float mine = 0;
  if (column < width) {
#pragma unroll 8
    for (std::int64_t row = share; row < rows; row += shares) mine += partial[row * width + column];
  }
  sums[threadIdx.x] = mine;
  __syncthreads();
  if (share > 0 || column >= width) return;
  float total = 0;
  for (unsigned i = 0; i < shares; ++i) total += sums[i * warp_lanes + lane];
  sum[column] += total;
}

}  // namespace hdpsim::kernels::cuda::layer
