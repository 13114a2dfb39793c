#include "kernels/cuda/layer/elementwise.cuh"

#include "kernels/cuda/layer/host.h"
#include "kernels/cuda/layer/rope.cuh"
#include "kernels/cuda/layer_launches.h"

namespace hdpsim::kernels::cuda::layer {
namespace {

dim3 grid_of(Launch& launch, std::int64_t rows, std::int64_t width, int count) {
  const RowGrid grid = row_grid(rows, width, count, launch.multiprocessors());
  return {grid.x, grid.y};
}

}  // namespace

void run(Launch& launch, const Add& op) {
  if (op.count == 0) return;
  with_chunk(takes_chunks_of_8({op.a, op.b, op.y}), [&](auto count) {
    const unsigned blocks = element_blocks(op.count, count(), launch.multiprocessors());
    if (op.fp32) {
      add_elements<count(), float><<<blocks, element_threads, 0, launch.stream()>>>(op);
    } else {
      add_elements<count(), bf16><<<blocks, element_threads, 0, launch.stream()>>>(op);
    }
  });
  check_launch("add_elements");
}

void run(Launch& launch, const Cast& op) {
  if (op.count == 0) return;
  with_chunk(takes_chunks_of_8({op.from, op.to}), [&](auto count) {
    const unsigned blocks = element_blocks(op.count, count(), launch.multiprocessors());
    if (op.to_fp32) {
      cast_elements<count(), bf16, float><<<blocks, element_threads, 0, launch.stream()>>>(op);
    } else {
      cast_elements<count(), float, bf16><<<blocks, element_threads, 0, launch.stream()>>>(op);
    }
  });
  check_launch("cast_elements");
}

void run(Launch& launch, const Adam& op) {
  if (op.count == 0) return;
  with_chunk(takes_chunks_of_8({op.master, op.gradient, op.m, op.v, op.parameter}), [&](auto count) {
    const unsigned blocks = element_blocks(op.count, count(), launch.multiprocessors());
    adam_step<count()><<<blocks, element_threads, 0, launch.stream()>>>(op, adam_correction(op));
  });
  check_launch("adam_step");
}

void run(Launch& launch, const SwigluForward& op) {
  if (op.tokens == 0 || op.width == 0) return;
  with_chunk(takes_chunks_of_8({op.gate_up, op.y}, {op.width}), [&](auto count) {
    const dim3 grid = grid_of(launch, op.tokens, op.width, count());
    swiglu_forward<count()><<<grid, element_threads, 0, launch.stream()>>>(op);
  });
  check_launch("swiglu_forward");
}

void run(Launch& launch, const SwigluBackward& op) {
  if (op.tokens == 0 || op.width == 0) return;
  with_chunk(takes_chunks_of_8({op.gate_up, op.d_y, op.d_gate_up}, {op.width}), [&](auto count) {
    const dim3 grid = grid_of(launch, op.tokens, op.width, count());
    swiglu_backward<count()><<<grid, element_threads, 0, launch.stream()>>>(op);
  });
  check_launch("swiglu_backward");
}

void run(Launch& launch, const EmbeddingForward& op) {
  if (op.tokens == 0 || op.width == 0) return;
  with_chunk(takes_chunks_of_8({op.table, op.y}, {op.width}), [&](auto count) {
    const dim3 grid = grid_of(launch, op.tokens, op.width, count());
    embedding_forward<count()><<<grid, element_threads, 0, launch.stream()>>>(op);
  });
  check_launch("embedding_forward");
}

void run(Launch& launch, const EmbeddingBackward& op) {
  if (op.tokens == 0 || op.width == 0) return;
  with_chunk(takes_chunks_of_8({op.d_y, op.d_table}, {op.width}), [&](auto count) {
    const dim3 grid = grid_of(launch, op.tokens, op.width, count());
    embedding_backward<count()><<<grid, element_threads, 0, launch.stream()>>>(op);
  });
  check_launch("embedding_backward");
}

void run(Launch& launch, const Rope& op) {
  require_at_most("RoPE: head dimension", op.dim, 2 * most_rope_pairs);
  if (op.dim % 2 != 0) throw UnsupportedInput("RoPE: a head dimension that is odd");
  if (op.head_stride != 0 && op.head_stride != op.dim) throw UnsupportedInput("RoPE: heads that are not side by side");
  if (op.tokens == 0 || op.heads == 0 || op.dim == 0) return;
  const unsigned blocks = rope_blocks(op.tokens, launch.multiprocessors());
  with_chunk(takes_chunks_of_8({op.x}, {op.stride, op.dim / 2}), [&](auto count) {
    rotate<count()><<<blocks, rope_threads, rope_shared_bytes, launch.stream()>>>(op, rope_frequencies(op));
  });
  check_launch("rotate");
}

}  // namespace hdpsim::kernels::cuda::layer
