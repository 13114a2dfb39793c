#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace hdpsim::kernels::cuda {

/// A kernel that copies repeatedly until it is stopped.
struct PeerCopy {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes_per_block = 0;       ///< Part that each thread block copies repeatedly; a multiple of 16 KiB.
  double bytes_per_second = 0;           ///< Most bytes per second that one thread block moves.
  const volatile int* stop = nullptr;    ///< Not 0: the kernel ends. Read by the device in pinned memory.
  volatile int* started = nullptr;       ///< Becomes 1 in pinned memory.
  unsigned long long time_limit_ns = 0;  ///< The kernel ends after this, whatever `stop` says.
};

/// Queues the kernel with `blocks` thread blocks, each alone on its multiprocessor.
void launch(const PeerCopy& copy, int blocks, cudaStream_t stream);

}  // namespace hdpsim::kernels::cuda
