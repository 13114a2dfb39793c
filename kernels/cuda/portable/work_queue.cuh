#pragma once

#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/portable/arguments.h"

namespace hdpsim::kernels::cuda::portable {

/// Kept in shared memory, where it takes no registers.
struct WorkItem {
  AttentionTile tile;
  std::int32_t head;
  bool exists;
};

__device__ __forceinline__ void look_up(const WorkQueue& queue, int item, WorkItem& work) {
  work.exists = item < queue.order.items();
  if (work.exists) {
    const TileOrder::Item at = queue.order.at(item);
    work.tile = queue.tiles[at.tile];
    work.head = at.head;
  }
}

/// Calls compute(work, look_ahead) for this block's items. All threads of the block take part and call look_ahead()
/// once, after they have started what takes long: it asks for the next item.
template <class Compute>
__device__ __forceinline__ void for_each_item(const WorkQueue& queue, const Compute& compute) {
  __shared__ WorkItem work[2];
  if (threadIdx.x == 0) look_up(queue, static_cast<int>(blockIdx.x), work[0]);
  int now = 0;
  __syncthreads();
  while (work[now].exists) {
    compute(work[now], [&] {
      if (threadIdx.x == 0) {
        look_up(queue, static_cast<int>(gridDim.x) + ptx::fetch_add(queue.taken, 1), work[1 - now]);
      }
    });
    __syncthreads();  // Shared memory may be reused, and the next item is known.
    now = 1 - now;
  }
}

}  // namespace hdpsim::kernels::cuda::portable
