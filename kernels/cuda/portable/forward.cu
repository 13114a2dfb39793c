#include "kernels/cuda/portable/forward.cuh"

#include <algorithm>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/portable/launch_kernel.h"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cuda::portable {
namespace {

template <class Shape>
void run_shape(const AttentionForward& op, Launch& launch) {
  std::vector<AttentionTile> tiles = query_tiles(op.blocks, Shape::queries);
  // Over no keys there is nothing to add.
  if (op.accumulate) std::erase_if(tiles, [](const AttentionTile& tile) { return tile.keys == 0; });
  const TileOrder order = query_tile_order(op.heads, op.blocks, tiles.size());
  ForwardArguments arguments = forward_arguments(op, {});
  if (tiles.empty()) return;
  arguments.queue = stage_queue(tiles, order, launch);
  launch_kernel<Shape>(op.accumulate ? attention_forward<Shape, true> : attention_forward<Shape, false>,
                       "attention_forward", arguments, Shape::blocks_per_multiprocessor, launch);
}

template <bool windowed>
void run_dim(const AttentionForward& op, Launch& launch) {
  if (op.heads.dim == 64) {
    run_shape<ForwardShape<64, windowed>>(op, launch);
  } else {
    run_shape<ForwardShape<128, windowed>>(op, launch);
  }
}

}  // namespace

void run(const AttentionForward& op, Launch& launch) {
  require_valid(op.heads, op.blocks);
  const bool windowed = std::ranges::any_of(op.blocks, [](const AttentionBlock& block) { return block.window > 0; });
  if (windowed) {
    run_dim<true>(op, launch);
  } else {
    run_dim<false>(op, launch);
  }
}

}  // namespace hdpsim::kernels::cuda::portable
