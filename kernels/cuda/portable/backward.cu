#include "kernels/cuda/portable/backward.cuh"

#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/portable/launch_kernel.h"
#include "kernels/cuda/portable/query_gradient.cuh"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cuda::portable {
namespace {

/// dK and dV, and dQ unless that has to be deterministic.
template <class Shape>
void run_key_tiles(const AttentionBackward& op, Launch& launch) {
  const AttentionHeads& heads = op.heads;
  const std::int64_t group = heads.heads / heads.kv_heads;
  const std::vector<AttentionTile> tiles = key_tiles(op.blocks, Shape::keys);
  const std::int64_t items = static_cast<std::int64_t>(tiles.size()) * heads.kv_heads;
  // Two rounds of the device even out what tiles differ in. Parts of a group add up in any order.
  const std::int64_t wanted = 2 * launch.multiprocessors();
  const std::int64_t parts = op.deterministic ? 1 : parts_of_group(group, items, wanted);
  // Tiles of a head share Q and dO in bf16 and dQ in fp32.
  const std::int64_t bytes = query_rows(op.blocks) * heads.dim * (group / parts) * 8;
  const TileOrder order = tile_order(tiles.size(), heads.kv_heads * parts, bytes, shared_cache_bytes());
  BackwardArguments arguments = backward_arguments(op, parts);
  if (tiles.empty()) return;
  arguments.queue = stage_queue(tiles, order, launch);
  launch_kernel<Shape>(op.deterministic ? attention_backward<Shape, false> : attention_backward<Shape, true>,
                       "attention_backward", arguments, 1, launch);
}

template <class Shape>
void run_query_tiles(const AttentionBackward& op, Launch& launch) {
  std::vector<AttentionTile> tiles = query_tiles(op.blocks, Shape::queries);
  std::erase_if(tiles, [](const AttentionTile& tile) { return tile.keys == 0; });
  if (tiles.empty()) return;
  BackwardArguments arguments = backward_arguments(op, 1);
  arguments.queue = stage_queue(tiles, query_tile_order(op.heads, op.blocks, tiles.size()), launch);
  launch_kernel<Shape>(attention_query_gradient<Shape>, "attention_query_gradient", arguments, 1, launch);
}

template <int dim>
void run_dim(const AttentionBackward& op, Launch& launch) {
  run_key_tiles<BackwardShape<dim>>(op, launch);
  if (op.deterministic) run_query_tiles<QueryGradientShape<dim>>(op, launch);
}

}  // namespace

void run(const AttentionBackward& op, Launch& launch) {
  require_valid(op.heads, op.blocks);
  if (op.heads.dim == 64) {
    run_dim<64>(op, launch);
  } else {
    run_dim<128>(op, launch);
  }
}

}  // namespace hdpsim::kernels::cuda::portable
