#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/impl/peer_copy.h"
#include "kernels/cuda/impl/runtime.h"

namespace hdpsim::kernels::cuda {
namespace {

constexpr int threads = 512;                          // NCCL runs as many for large messages
constexpr std::size_t piece = std::size_t{16} << 10;  // bytes between two checks of the clock

__global__ void __launch_bounds__(threads) copy_until_stopped(PeerCopy copy) {
  const auto* const from = static_cast<const unsigned char*>(copy.from) + blockIdx.x * copy.bytes_per_block;
  auto* const to = static_cast<unsigned char*>(copy.to) + blockIdx.x * copy.bytes_per_block;
  const double ns_per_piece = static_cast<double>(piece) / copy.bytes_per_second * 1e9;
  __shared__ bool stopped;
  const unsigned long long begin = ptx::device_nanoseconds();
  if (threadIdx.x == 0) {
    stopped = false;
    if (blockIdx.x == 0) *copy.started = 1;
  }
  std::size_t offset = 0;
  for (unsigned long long pieces = 1;; ++pieces) {
    __syncthreads();
    if (stopped) return;
    for (std::size_t i = 16 * threadIdx.x; i < piece; i += std::size_t{16} * threads) {
      ptx::store16(to + offset + i, ptx::load16(from + offset + i));
    }
    offset += piece;
    if (offset == copy.bytes_per_block) offset = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      const auto due = static_cast<unsigned long long>(ns_per_piece * static_cast<double>(pieces));
      unsigned long long elapsed = ptx::device_nanoseconds() - begin;
      while (elapsed < due) elapsed = ptx::device_nanoseconds() - begin;
      // Reading host memory takes as long as several pieces.
      stopped = elapsed > copy.time_limit_ns || (pieces % 64 == 0 && *copy.stop != 0);
    }
  }
}

}  // namespace

void launch(const PeerCopy& copy, int blocks, cudaStream_t stream) {
  // Takes all shared memory of a multiprocessor, so that no kernel that needs any runs at the same time as the block.
  int device = 0;
  int shared_bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "cudaDeviceGetAttribute");
  shared_bytes -= 1024;  // static shared memory of the block
  check(cudaFuncSetAttribute(copy_until_stopped, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "cudaFuncSetAttribute");
  copy_until_stopped<<<blocks, threads, static_cast<std::size_t>(shared_bytes), stream>>>(copy);
  check(cudaGetLastError(), "the launch of a copy kernel");
}

}  // namespace hdpsim::kernels::cuda
