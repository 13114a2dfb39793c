#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/hopper/tensor_map.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/launch.h"

/// Shared by the launches of the Hopper path. For .cu files.
namespace hdpsim::kernels::cuda::hopper {

/// DeviceError if the driver refuses or is too old for the copy engine.
[[nodiscard]] ptx::TensorMap encode(const TensorShape& shape);

/// Queues `kernel` with a block for each multiprocessor of `launch`, or for each item if there are fewer.
template <class Arguments>
void launch_kernel(void (*kernel)(Arguments), const char* name, const Arguments& arguments, int threads,
                   std::uint32_t shared_bytes, const Launch& launch) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        name);
  const int blocks = std::min(arguments.common.queue.order.items(), launch.multiprocessors());
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared_bytes, launch.stream()>>>(arguments);
  check(cudaGetLastError(), name);
}

}  // namespace hdpsim::kernels::cuda::hopper
