#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/bf16.h"
#include "kernels/cuda/device/ptx.cuh"

/// What the kernels of a layer have in common. They read and write chunks of neighbouring elements: 8, of which 8 bf16
/// are one access of 16 bytes, where widths and addresses allow it, else 1. Arithmetic is fp32.
namespace hdpsim::kernels::cuda::layer {

inline constexpr int warp_lanes = 32;
inline constexpr float log2_e = 1.4426950408889634F;
inline constexpr float ln_2 = 0.6931471805599453F;

template <int count>
struct Chunk {
  float value[count];
};

/// A chunk as it is stored, in half the registers.
template <int count>
using Packed = std::conditional_t<count == 1, bf16, ptx::Vector16>;

template <int count>
__device__ __forceinline__ Packed<count> load_packed(const bf16* from) {
  static_assert(count == 8 || count == 1);
  if constexpr (count == 1) {
    return *from;
  } else {
    return ptx::load16(from);
  }
}

__device__ __forceinline__ Chunk<1> unpack(bf16 value) {
  return {{to_float(value)}};
}
__device__ __forceinline__ Chunk<8> unpack(const ptx::Vector16& raw) {
  Chunk<8> chunk;
  for (int i = 0; i < 4; ++i) {
    chunk.value[2 * i] = ptx::low_bf16(raw.word[i]);
    chunk.value[2 * i + 1] = ptx::high_bf16(raw.word[i]);
  }
  return chunk;
}

template <int count>
__device__ __forceinline__ Chunk<count> load_chunk(const bf16* from) {
  return unpack(load_packed<count>(from));
}

template <int count>
__device__ __forceinline__ Chunk<count> load_chunk(const float* from) {
  static_assert(count == 8 || count == 1);
  Chunk<count> chunk;
  if constexpr (count == 1) {
    chunk.value[0] = *from;
  } else {
    for (int half = 0; half < 2; ++half) {
      const ptx::Vector16 raw = ptx::load16(from + 4 * half);
      for (int i = 0; i < 4; ++i) chunk.value[4 * half + i] = __builtin_bit_cast(float, raw.word[i]);
    }
  }
  return chunk;
}

template <int count>
__device__ __forceinline__ void store_chunk(bf16* to, const Chunk<count>& chunk) {
  if constexpr (count == 1) {
    *to = to_bf16(chunk.value[0]);
  } else {
    ptx::Vector16 raw;
    for (int i = 0; i < 4; ++i) raw.word[i] = ptx::pack_bf16(chunk.value[2 * i], chunk.value[2 * i + 1]);
    ptx::store16(to, raw);
  }
}

template <int count>
__device__ __forceinline__ void store_chunk(float* to, const Chunk<count>& chunk) {
  if constexpr (count == 1) {
    *to = chunk.value[0];
  } else {
    for (int half = 0; half < 2; ++half) {
      ptx::Vector16 raw;
      for (int i = 0; i < 4; ++i) raw.word[i] = __builtin_bit_cast(std::uint32_t, chunk.value[4 * half + i]);
      ptx::store16(to + 4 * half, raw);
    }
  }
}

/// A size that a type carries: decltype(size)::value.
template <int count>
struct Size {
  static constexpr int value = count;
};

/// Calls visit(i, Size<n>) for neighbouring elements i ... i + n - 1 of [0, total), spread over the grid: n is `count`,
/// and 1 for the elements behind the last whole chunk.
template <int count, class Visit>
__device__ __forceinline__ void for_chunks(std::int64_t total, Visit visit) {
  const auto threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const auto first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t whole = total / count;
  for (std::int64_t i = first; i < whole; i += threads) visit(i * count, Size<count>{});
  for (std::int64_t i = whole * count + first; i < total; i += threads) visit(i, Size<1>{});
}

__device__ __forceinline__ float warp_sum(float value) {
  for (int mask = warp_lanes / 2; mask > 0; mask /= 2) value += ptx::shuffle_xor(value, mask);
  return value;
}

/// The sum over the block, the same bits in every thread. `partial`: shared, a float a warp; it may be used again
/// behind the next barrier.
__device__ __forceinline__ float block_sum(float value, float* partial) {
  value = warp_sum(value);
  if (blockDim.x == warp_lanes) return value;
  if (threadIdx.x % warp_lanes == 0) partial[threadIdx.x / warp_lanes] = value;
  __syncthreads();
  float sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / warp_lanes; ++warp) sum += partial[warp];
  return sum;
}

__device__ __forceinline__ float sigmoid(float x) {
  return 1 / (1 + ptx::exp2(-x * log2_e));
}

}  // namespace hdpsim::kernels::cuda::layer
