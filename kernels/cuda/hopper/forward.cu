#include "kernels/cuda/hopper/forward.cuh"

#include <vector>

#include "kernels/cuda/hopper/hopper_launch.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/portable/launch_kernel.h"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cuda::hopper {
namespace {

template <class Shape>
void run_shape(const AttentionForward& op, Launch& launch) {
  std::vector<AttentionTile> tiles = query_tiles(op.blocks, Shape::queries);
  // Over no keys there is nothing to add.
  if (op.accumulate) std::erase_if(tiles, [](const AttentionTile& tile) { return tile.keys == 0; });
  ForwardArguments arguments = forward_arguments<Shape>(op, {}, encode);
  if (tiles.empty()) return;
  const TileOrder order = portable::query_tile_order(op.heads, op.blocks, tiles.size());
  arguments.common.queue = portable::stage_queue(tiles, order, launch);
  launch_kernel(op.accumulate ? attention_forward<Shape, true> : attention_forward<Shape, false>, "attention_forward",
                arguments, Shape::threads, ForwardShared<Shape>::bytes, launch);
}

}  // namespace

void run(const AttentionForward& op, Launch& launch) {
  require_valid(op.heads, op.blocks);
  if (op.heads.dim == 64) {
    run_shape<ForwardShape<64>>(op, launch);
  } else {
    run_shape<ForwardShape<128>>(op, launch);
  }
}

}  // namespace hdpsim::kernels::cuda::hopper
