#include "kernels/cuda/layer/rms_norm.cuh"

#include "kernels/cuda/layer/host.h"
#include "kernels/cuda/layer_launches.h"

namespace hdpsim::kernels::cuda::layer {

void run(Launch& launch, const RmsNormForward& op) {
  if (op.tokens == 0 || op.width == 0) return;
  with_chunk(takes_chunks_of_8({op.x, op.weight, op.y}, {op.width}), [&](auto count) {
    require_at_most("RMSNorm: width", op.width, widest_row(count()));
    const unsigned threads = row_threads(op.width, count());
    const unsigned blocks = row_blocks(op.tokens, threads, launch.multiprocessors(), forward_resident_threads);
    rms_norm_forward<count()><<<blocks, threads, row_shared_bytes, launch.stream()>>>(op);
  });
  check_launch("rms_norm_forward");
}

void run(Launch& launch, const RmsNormBackward& op) {
  if (op.tokens == 0 || op.width == 0) return;
  with_chunk(takes_chunks_of_8({op.x, op.weight, op.d_y, op.d_x}, {op.width}), [&](auto count) {
    require_at_most("RMSNorm: width", op.width, widest_row(count()));
    const unsigned threads = row_threads(op.width, count());
    const unsigned blocks = row_blocks(op.tokens, threads, launch.multiprocessors(), backward_resident_threads);
    auto* const partial =
        static_cast<float*>(launch.scratch(blocks * static_cast<std::size_t>(op.width) * sizeof(float)));
    rms_norm_backward<count()><<<blocks, threads, row_shared_bytes, launch.stream()>>>(op, partial);
    check_launch("rms_norm_backward");
    const auto column_blocks = static_cast<unsigned>((op.width + warp_lanes - 1) / warp_lanes);
    add_column_sums<column_shares>
        <<<column_blocks, warp_lanes * column_shares, column_sum_shared_bytes, launch.stream()>>>(
            partial, blocks, op.width, op.d_weight);
  });
  check_launch("add_column_sums");
}

}  // namespace hdpsim::kernels::cuda::layer
