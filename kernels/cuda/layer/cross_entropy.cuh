#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/layer/vector.cuh"
#include "kernels/spec/layer.h"

namespace hdpsim::kernels::cuda::layer {

inline constexpr unsigned cross_entropy_threads = 1024;
/// One resident block per multiprocessor, so that the rows under way (a quarter of a megabyte each for the largest
/// vocabularies) stay in the cache between their two readings.
inline unsigned cross_entropy_blocks(std::int64_t tokens, int multiprocessors) {
  return static_cast<unsigned>(std::min<std::int64_t>(tokens, multiprocessors));
}

/// The largest of some numbers and the sum of exp(x - largest).
struct OnlineSum {
  float largest;
  float sum;
};
inline constexpr float no_number = -3.0e38F;  ///< As good as -inf, and the difference of two of them is 0.

__device__ __forceinline__ OnlineSum merged(OnlineSum a, OnlineSum b) {
  // The device's maximum would pass over NaN; a sum with NaN in it stays NaN, whatever the maximum.
  const float largest = a.largest > b.largest ? a.largest : b.largest;
  return {largest,
          a.sum * ptx::exp2((a.largest - largest) * log2_e) + b.sum * ptx::exp2((b.largest - largest) * log2_e)};
}

inline constexpr std::size_t cross_entropy_shared_bytes = 2 * cross_entropy_threads / warp_lanes * sizeof(OnlineSum);

/// Merges over the block, with the same bits in every thread; `partial` as for block_sum().
__device__ __forceinline__ OnlineSum block_merged(OnlineSum mine, OnlineSum* partial) {
  for (int mask = warp_lanes / 2; mask > 0; mask /= 2) {
    const OnlineSum other = {ptx::shuffle_xor(mine.largest, mask), ptx::shuffle_xor(mine.sum, mask)};
    mine = merged(mine, other);
  }
  if (threadIdx.x % warp_lanes == 0) partial[threadIdx.x / warp_lanes] = mine;
  __syncthreads();
  OnlineSum all = partial[0];
  for (unsigned warp = 1; warp < blockDim.x / warp_lanes; ++warp) all = merged(all, partial[warp]);
  return all;
}

/// Calls visit(i, chunk of row[i ...]) for the chunks of this thread. Two loads are under way at once, as the few
/// threads of a multiprocessor would not keep its memory busy otherwise; visit() may overwrite its chunk.
template <int count, class Visit>
__device__ __forceinline__ void for_row(const bf16* row, std::int64_t width, Visit visit) {
  constexpr int under_way = 2;
  const auto step = static_cast<std::int64_t>(blockDim.x) * count;
  for (std::int64_t begin = static_cast<std::int64_t>(threadIdx.x) * count; begin < width; begin += under_way * step) {
    Packed<count> chunks[under_way];
#pragma unroll
    for (int j = 0; j < under_way; ++j) {
      if (begin + j * step < width) chunks[j] = load_packed<count>(row + begin + j * step);
    }
#pragma unroll
    for (int j = 0; j < under_way; ++j) {
      if (begin + j * step < width) visit(begin + j * step, unpack(chunks[j]));
    }
  }
}

/// The sum of one row, over the block; `partial` as for block_merged().
template <int count>
__device__ __forceinline__ OnlineSum row_sum(const bf16* row, std::int64_t width, OnlineSum* partial) {
  OnlineSum mine = {no_number, 0};
  for_row<count>(row, width, [&](std::int64_t, const Chunk<count>& chunk) {
    OnlineSum of_chunk = {no_number, 0};
    for (const float value : chunk.value) of_chunk.largest = value > of_chunk.largest ? value : of_chunk.largest;
    for (const float value : chunk.value) of_chunk.sum += ptx::exp2((value - of_chunk.largest) * log2_e);
    mine = merged(mine, of_chunk);
  });
  return block_merged(mine, partial);
}

/// LogSumExp, a block per row; deterministic as CrossEntropy is. Without a column: the logarithm of 0.
template <int count>
__global__ void __launch_bounds__(cross_entropy_threads) log_sum_exp(const LogSumExp op) {
  auto* const partial = reinterpret_cast<OnlineSum*>(ptx::dynamic_shared());
  int turn = 0;
  for (std::int64_t token = blockIdx.x; token < op.tokens; token += gridDim.x) {
    const bf16* const row = static_cast<const bf16*>(op.logits) + token * op.vocabulary;
    const OnlineSum all = row_sum<count>(row, op.vocabulary, partial + turn * (cross_entropy_threads / warp_lanes));
    turn ^= 1;
    if (threadIdx.x == 0) op.result[token] = all.largest + ptx::log2(all.sum) * ln_2;
  }
}

/// JoinLogSumExp, a thread per token.
inline __global__ void __launch_bounds__(cross_entropy_threads) join_log_sum_exp(const JoinLogSumExp op) {
  const auto threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t token = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; token < op.tokens;
       token += threads) {
    OnlineSum all = {no_number, 0};
    for (std::int64_t part = 0; part < op.parts; ++part) {
      const float value = op.partial[part * op.tokens + token];
      if (!(value < no_number)) all = merged(all, {value, 1});  // -inf adds nothing, NaN stays
    }
    op.result[token] = all.largest + ptx::log2(all.sum) * ln_2;
  }
}

/// CrossEntropy. A block per row: it reads the row, and again when it writes the gradient in its place. A number is
/// rounded once, the loss is fp32 throughout; the order of additions is fixed: bitwise deterministic.
template <int count>
__global__ void __launch_bounds__(cross_entropy_threads) cross_entropy(const CrossEntropy op) {
  auto* const partial = reinterpret_cast<OnlineSum*>(ptx::dynamic_shared());
  int turn = 0;
  for (std::int64_t token = blockIdx.x; token < op.tokens; token += gridDim.x) {
    bf16* const row = static_cast<bf16*>(op.logits) + token * op.vocabulary;
    const std::int64_t target = op.targets[token];
    if (target < 0) {
      const auto step = static_cast<std::int64_t>(blockDim.x) * count;
      for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * count; i < op.vocabulary; i += step) {
        store_chunk(row + i, Chunk<count>{});
      }
      if (threadIdx.x == 0) op.loss[token] = 0;
      continue;
    }
    const bool is_here = target < op.vocabulary;
    const float logit = is_here ? to_float(row[target]) : 0;
    float largest = 0;  // The sum of all columns is exp(largest + log_sum).
    float log_sum = 0;
    if (op.log_sum_exp != nullptr) {
      largest = op.log_sum_exp[token];
      __syncthreads();  // nobody writes a gradient before all have read the logit
    } else {
      const OnlineSum all = row_sum<count>(row, op.vocabulary, partial + turn * (cross_entropy_threads / warp_lanes));
      turn ^= 1;
      largest = all.largest;
      log_sum = ptx::log2(all.sum) * ln_2;
    }
    for_row<count>(row, op.vocabulary, [&](std::int64_t i, const Chunk<count>& chunk) {
      Chunk<count> gradient;
      for (int k = 0; k < count; ++k) {
        const float probability = ptx::exp2((chunk.value[k] - largest - log_sum) * log2_e);
        gradient.value[k] = (probability - (i + k == target ? 1.0F : 0.0F)) * op.scale;
      }
      store_chunk(row + i, gradient);
    });
    if (threadIdx.x == 0) op.loss[token] = is_here ? largest + log_sum - logit : 0;
  }
}

}  // namespace hdpsim::kernels::cuda::layer
