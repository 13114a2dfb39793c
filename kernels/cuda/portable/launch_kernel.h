#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/error.h"

/// Shared by the launches of the portable path. For .cu files.
namespace hdpsim::kernels::cuda::portable {

/// The part of the last-level cache that concurrent tiles may share: half, because on devices whose cache is split in
/// two (A100, H100) the other half keeps a copy of what its side of the chip reads.
inline std::int64_t shared_cache_bytes() {
  int device = 0;
  int bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
  return bytes / 2;
}

inline std::int64_t query_rows(std::span<const AttentionBlock> blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0},
                         [](std::int64_t sum, const AttentionBlock& block) { return sum + block.queries; });
}
inline std::int64_t key_rows(std::span<const AttentionBlock> blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0},
                         [](std::int64_t sum, const AttentionBlock& block) { return sum + block.keys; });
}

/// The order in which tiles that own query rows run, so that the keys and values of the heads that run together are
/// cached.
inline TileOrder query_tile_order(const AttentionHeads& heads, std::span<const AttentionBlock> blocks,
                                  std::size_t tiles) {
  const std::int64_t kv_head_bytes = key_rows(blocks) * heads.dim * 2 * static_cast<std::int64_t>(sizeof(bf16));
  return tile_order(tiles, heads.heads, kv_head_bytes * heads.kv_heads / heads.heads, shared_cache_bytes());
}

inline WorkQueue stage_queue(std::span<const AttentionTile> tiles, const TileOrder& order, Launch& launch) {
  const std::vector<std::byte> image = queue_image(tiles);
  return queue_at(launch.stage(image.data(), image.size()), order);
}

/// DeviceError where a multiprocessor has too little shared memory for a block of `kernel`; GPUs for graphics have less
/// than those for computing of the same generation.
template <class Arguments>
void allow_shared_memory(void (*kernel)(Arguments), const char* name, std::uint32_t bytes) {
  int device = 0;
  int available = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  cudaFuncAttributes attributes = {};
  check(cudaFuncGetAttributes(&attributes, kernel), name);
  const std::size_t needed = bytes + attributes.sharedSizeBytes;
  if (needed > static_cast<std::size_t>(available)) {
    throw DeviceError(std::string(name) + " needs " + std::to_string(needed) +
                      " bytes of shared memory a thread block; the device has " + std::to_string(available));
  }
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), name);
}

/// Queues `kernel` with as many blocks as fit at once on the multiprocessors of `launch`, or as there are items.
template <class Shape, class Arguments>
void launch_kernel(void (*kernel)(Arguments), const char* name, const Arguments& arguments,
                   int blocks_per_multiprocessor, const Launch& launch) {
  allow_shared_memory(kernel, name, Shape::shared_bytes);
  const int blocks = std::min(arguments.queue.order.items(), launch.multiprocessors() * blocks_per_multiprocessor);
  kernel<<<static_cast<unsigned>(blocks), Shape::threads, Shape::shared_bytes, launch.stream()>>>(arguments);
  check(cudaGetLastError(), name);
}

}  // namespace hdpsim::kernels::cuda::portable
