#include "kernels/cuda/hopper/backward.cuh"

#include <vector>

#include "kernels/cuda/hopper/hopper_launch.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/portable/launch_kernel.h"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cuda::hopper {
namespace {

template <class Shape>
void run_shape(const AttentionBackward& op, Launch& launch) {
  const AttentionHeads& heads = op.heads;
  const std::int64_t group = heads.heads / heads.kv_heads;
  const std::vector<AttentionTile> tiles = key_tiles(op.blocks, Shape::keys);
  const std::int64_t items = static_cast<std::int64_t>(tiles.size()) * heads.kv_heads;
  // Two rounds of the device even out what tiles differ in. Parts of a group add up in any order.
  const std::int64_t parts = parts_of_group(group, items, 2 * launch.multiprocessors());
  BackwardArguments arguments = backward_arguments<Shape>(op, {}, parts, encode);
  if (tiles.empty()) return;
  // Tiles of a head share Q and dO in bf16 and dQ in fp32.
  const std::int64_t bytes = portable::query_rows(op.blocks) * heads.dim * (group / parts) * 8;
  const TileOrder order = tile_order(tiles.size(), heads.kv_heads * parts, bytes, portable::shared_cache_bytes());
  arguments.common.queue = portable::stage_queue(tiles, order, launch);
  launch_kernel(attention_backward<Shape>, "attention_backward", arguments, Shape::threads,
                BackwardShared<Shape>::bytes, launch);
}

}  // namespace

void run(const AttentionBackward& op, Launch& launch) {
  // The copy engine adds in any order; the portable kernels have an order.
  if (op.deterministic) return portable::run(op, launch);
  require_valid(op.heads, op.blocks);
  if (op.heads.dim == 64) {
    run_shape<BackwardShape<64>>(op, launch);
  } else {
    run_shape<BackwardShape<128>>(op, launch);
  }
}

}  // namespace hdpsim::kernels::cuda::hopper
