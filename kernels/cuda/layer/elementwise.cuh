#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/layer/vector.cuh"
#include "kernels/spec/layer.h"

// Kernels in which each element is independent: bound by memory, each tensor read and written once, bitwise
// deterministic. `count` is the chunk that alignment allows.
namespace hdpsim::kernels::cuda::layer {

inline constexpr unsigned element_threads = 256;

/// Blocks for `total` elements, as many as the multiprocessors hold at once at most.
inline unsigned element_blocks(std::int64_t total, int count, int multiprocessors) {
  const std::int64_t all =
      (total + std::int64_t{element_threads} * count - 1) / (std::int64_t{element_threads} * count);
  return static_cast<unsigned>(std::clamp<std::int64_t>(all, 1, std::int64_t{multiprocessors} * 8));
}

/// Add of T.
template <int count, class T>
__global__ void __launch_bounds__(element_threads) add_elements(const Add op) {
  for_chunks<count>(op.count, [&](std::int64_t i, auto size) {
    constexpr int n = decltype(size)::value;
    Chunk<n> sum = load_chunk<n>(static_cast<const T*>(op.a) + i);
    const Chunk<n> b = load_chunk<n>(static_cast<const T*>(op.b) + i);
    for (int k = 0; k < n; ++k) sum.value[k] += b.value[k];
    store_chunk(static_cast<T*>(op.y) + i, sum);
  });
}

template <int count, class From, class To>
__global__ void __launch_bounds__(element_threads) cast_elements(const Cast op) {
  for_chunks<count>(op.count, [&](std::int64_t i, auto size) {
    constexpr int n = decltype(size)::value;
    store_chunk(static_cast<To*>(op.to) + i, load_chunk<n>(static_cast<const From*>(op.from) + i));
  });
}

/// 1 / (1 - beta1^t) and 1 / (1 - beta2^t), computed by the host in fp64.
struct AdamCorrection {
  float mean = 1;
  float variance = 1;
};
inline AdamCorrection adam_correction(const Adam& op) {
  const auto step = static_cast<double>(op.step);
  return {static_cast<float>(1 / (1 - std::pow(static_cast<double>(op.beta1), step))),
          static_cast<float>(1 / (1 - std::pow(static_cast<double>(op.beta2), step)))};
}

template <int count>
__global__ void __launch_bounds__(element_threads) adam_step(const Adam op, const AdamCorrection correction) {
  for_chunks<count>(op.count, [&](std::int64_t i, auto size) {
    constexpr int n = decltype(size)::value;
    Chunk<n> master = load_chunk<n>(op.master + i);
    Chunk<n> m = load_chunk<n>(op.m + i);
    Chunk<n> v = load_chunk<n>(op.v + i);
    const Chunk<n> gradient = load_chunk<n>(op.gradient + i);
    for (int k = 0; k < n; ++k) {
      const float g = gradient.value[k] * op.gradient_scale;
      m.value[k] = op.beta1 * m.value[k] + (1 - op.beta1) * g;
      v.value[k] = op.beta2 * v.value[k] + (1 - op.beta2) * g * g;
      const float step = m.value[k] * correction.mean / (ptx::sqrt(v.value[k] * correction.variance) + op.epsilon);
      master.value[k] -= op.rate * (step + op.decay * master.value[k]);
    }
    store_chunk(op.master + i, master);
    store_chunk(op.m + i, m);
    store_chunk(op.v + i, v);
    if (op.parameter != nullptr) store_chunk(static_cast<bf16*>(op.parameter) + i, master);
  });
}

/// SwiGLU and embeddings know rows: block (x, y) takes column chunk x of the rows y, y + gridDim.y, ...
struct RowGrid {
  unsigned x = 1;
  unsigned y = 1;
};
inline RowGrid row_grid(std::int64_t rows, std::int64_t width, int count, int multiprocessors) {
  const std::int64_t across =
      (width + std::int64_t{element_threads} * count - 1) / (std::int64_t{element_threads} * count);
  const std::int64_t down = (std::int64_t{multiprocessors} * 8 + across - 1) / across;
  return {static_cast<unsigned>(across),
          static_cast<unsigned>(std::clamp<std::int64_t>(down, 1, std::min<std::int64_t>(rows, 65535)))};
}
template <int count>
__device__ __forceinline__ std::int64_t column_of_thread() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * count;
}

template <int count>
__global__ void __launch_bounds__(element_threads) swiglu_forward(const SwigluForward op) {
  const std::int64_t column = column_of_thread<count>();
  if (column >= op.width) return;
  for (std::int64_t token = blockIdx.y; token < op.tokens; token += gridDim.y) {
    const bf16* const gate_up = static_cast<const bf16*>(op.gate_up) + token * 2 * op.width + column;
    Chunk<count> y = load_chunk<count>(gate_up);
    const Chunk<count> up = load_chunk<count>(gate_up + op.width);
    for (int k = 0; k < count; ++k) y.value[k] *= sigmoid(y.value[k]) * up.value[k];
    store_chunk(static_cast<bf16*>(op.y) + token * op.width + column, y);
  }
}

/// A thread has read what it overwrites, so that d_gate_up may be gate_up.
template <int count>
__global__ void __launch_bounds__(element_threads) swiglu_backward(const SwigluBackward op) {
  const std::int64_t column = column_of_thread<count>();
  if (column >= op.width) return;
  for (std::int64_t token = blockIdx.y; token < op.tokens; token += gridDim.y) {
    const std::int64_t at = token * 2 * op.width + column;
    const Chunk<count> gate = load_chunk<count>(static_cast<const bf16*>(op.gate_up) + at);
    const Chunk<count> up = load_chunk<count>(static_cast<const bf16*>(op.gate_up) + at + op.width);
    const Chunk<count> d_y = load_chunk<count>(static_cast<const bf16*>(op.d_y) + token * op.width + column);
    Chunk<count> d_gate;
    Chunk<count> d_up;
    for (int k = 0; k < count; ++k) {
      const float s = sigmoid(gate.value[k]);
      d_gate.value[k] = d_y.value[k] * up.value[k] * s * (1 + gate.value[k] * (1 - s));
      d_up.value[k] = d_y.value[k] * gate.value[k] * s;
    }
    store_chunk(static_cast<bf16*>(op.d_gate_up) + at, d_gate);
    store_chunk(static_cast<bf16*>(op.d_gate_up) + at + op.width, d_up);
  }
}

template <int count>
__global__ void __launch_bounds__(element_threads) embedding_forward(const EmbeddingForward op) {
  const std::int64_t column = column_of_thread<count>();
  if (column >= op.width) return;
  for (std::int64_t token = blockIdx.y; token < op.tokens; token += gridDim.y) {
    const std::int32_t id = op.ids[token];
    const bf16* const row = static_cast<const bf16*>(op.table) + id * op.width;
    Chunk<count> y{};
    if (id >= 0) y = unpack(load_packed<count>(row + column));
    store_chunk(static_cast<bf16*>(op.y) + token * op.width + column, y);
  }
}

/// Adds to memory in whatever order threads come: where a token is met twice, two runs may differ in the last bits.
template <int count>
__global__ void __launch_bounds__(element_threads) embedding_backward(const EmbeddingBackward op) {
  const std::int64_t column = column_of_thread<count>();
  if (column >= op.width) return;
  for (std::int64_t token = blockIdx.y; token < op.tokens; token += gridDim.y) {
    if (op.ids[token] < 0) continue;
    const Chunk<count> d_y = load_chunk<count>(static_cast<const bf16*>(op.d_y) + token * op.width + column);
    float* const row = op.d_table + op.ids[token] * op.width + column;
    if constexpr (count == 1) {
      ptx::add(row, d_y.value[0]);
    } else {
      for (int k = 0; k < count; k += 2) ptx::add2(row + k, d_y.value[k], d_y.value[k + 1]);
    }
  }
}

}  // namespace hdpsim::kernels::cuda::layer
