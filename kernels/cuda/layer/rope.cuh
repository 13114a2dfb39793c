#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/layer/vector.cuh"
#include "kernels/spec/layer.h"

namespace hdpsim::kernels::cuda::layer {

inline constexpr int most_rope_pairs = 128;
inline constexpr unsigned rope_threads = 128;

/// Turns that each pair of elements of a head makes from one position to the next. In fp64: a position of a million
/// leaves no fraction of a turn in fp32.
struct RopeFrequencies {
  double turns[most_rope_pairs];
};
inline RopeFrequencies rope_frequencies(const Rope& op) {
  constexpr double turn = 6.283185307179586476925;
  RopeFrequencies frequencies{};
  for (std::int64_t i = 0; i < op.dim / 2; ++i) {
    const double angle = std::pow(op.base, -2 * static_cast<double>(i) / static_cast<double>(op.dim));
    frequencies.turns[i] = (op.inverse ? -1 : 1) * angle / turn;
  }
  return frequencies;
}

/// Cosines, then sines, twice: those of two tokens are under way.
inline constexpr std::size_t rope_shared_bytes = 4 * most_rope_pairs * sizeof(float);
inline unsigned rope_blocks(std::int64_t tokens, int multiprocessors) {
  return static_cast<unsigned>(std::min<std::int64_t>(tokens, std::int64_t{multiprocessors} * 16));
}

/// Rope. A block per token: its angles are computed once and serve all heads. Bitwise deterministic.
template <int count>
__global__ void __launch_bounds__(rope_threads) rotate(const Rope op, const RopeFrequencies frequencies) {
  const auto half = static_cast<int>(op.dim / 2);
  const int chunks_of_half = half / count;
  const int chunks = chunks_of_half * static_cast<int>(op.heads);
  auto* angles = reinterpret_cast<float*>(ptx::dynamic_shared());
  int turn = 0;
  for (std::int64_t token = blockIdx.x; token < op.tokens; token += gridDim.x) {
    float* const cosines = angles + turn * 2 * most_rope_pairs;
    float* const sines = cosines + most_rope_pairs;
    turn ^= 1;
    for (int i = static_cast<int>(threadIdx.x); i < half; i += static_cast<int>(blockDim.x)) {
      const double turns = op.positions[token] * frequencies.turns[i];
      const auto fraction = static_cast<float>(turns - static_cast<double>(static_cast<std::int64_t>(turns)));
      ptx::sin_cos(fraction * 6.2831853071795865F, sines[i], cosines[i]);
    }
    __syncthreads();
    bf16* const row = static_cast<bf16*>(op.x) + token * op.stride;
    for (int chunk = static_cast<int>(threadIdx.x); chunk < chunks; chunk += static_cast<int>(blockDim.x)) {
      const int i = chunk % chunks_of_half * count;
      bf16* const first = row + chunk / chunks_of_half * op.dim + i;
      bf16* const second = first + half;
      const Chunk<count> a = load_chunk<count>(first);
      const Chunk<count> b = load_chunk<count>(second);
      Chunk<count> rotated_a;
      Chunk<count> rotated_b;
      for (int k = 0; k < count; ++k) {
        rotated_a.value[k] = a.value[k] * cosines[i + k] - b.value[k] * sines[i + k];
        rotated_b.value[k] = b.value[k] * cosines[i + k] + a.value[k] * sines[i + k];
      }
      store_chunk(first, rotated_a);
      store_chunk(second, rotated_b);
    }
  }
}

}  // namespace hdpsim::kernels::cuda::layer
