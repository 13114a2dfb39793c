#include <algorithm>

#include "kernels/cuda/layer/attention_delta.cuh"
#include "kernels/cuda/layer/cross_entropy.cuh"
#include "kernels/cuda/layer/host.h"
#include "kernels/cuda/layer_launches.h"

namespace hdpsim::kernels::cuda::layer {

void run(Launch& launch, const CrossEntropy& op) {
  if (op.tokens == 0) return;
  const unsigned blocks = cross_entropy_blocks(op.tokens, launch.multiprocessors());
  with_chunk(takes_chunks_of_8({op.logits}, {op.vocabulary}), [&](auto count) {
    cross_entropy<count()><<<blocks, cross_entropy_threads, cross_entropy_shared_bytes, launch.stream()>>>(op);
  });
  check_launch("cross_entropy");
}

void run(Launch& launch, const LogSumExp& op) {
  if (op.tokens == 0) return;
  const unsigned blocks = cross_entropy_blocks(op.tokens, launch.multiprocessors());
  with_chunk(takes_chunks_of_8({op.logits}, {op.vocabulary}), [&](auto count) {
    log_sum_exp<count()><<<blocks, cross_entropy_threads, cross_entropy_shared_bytes, launch.stream()>>>(op);
  });
  check_launch("log_sum_exp");
}

void run(Launch& launch, const JoinLogSumExp& op) {
  if (op.tokens == 0) return;
  const auto blocks = static_cast<unsigned>((op.tokens + cross_entropy_threads - 1) / cross_entropy_threads);
  join_log_sum_exp<<<blocks, cross_entropy_threads, 0, launch.stream()>>>(op);
  check_launch("join_log_sum_exp");
}

void run(Launch& launch, const AttentionDelta& requested) {
  require_valid(requested.heads, {});
  AttentionDelta op = requested;
  op.heads.dim = op.heads.value_width();  // the only width of this kernel's tensors
  if (op.rows == 0) return;
  with_chunk(takes_chunks_of_8({op.o.data, op.d_o.data}, {op.o.stride, op.d_o.stride}), [&](auto count) {
    const int lanes = delta_lanes<count()>(op.heads.dim);
    const DeltaGrid grid = delta_grid(op, lanes, launch.multiprocessors());
    attention_delta<count()><<<dim3(grid.x, grid.y), delta_threads, 0, launch.stream()>>>(op, lanes);
  });
  check_launch("attention_delta");
}

}  // namespace hdpsim::kernels::cuda::layer
