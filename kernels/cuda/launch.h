#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cuda {

class DeviceClock;

/// The stream on which kernels are queued, and the memory that their launches need.
class Launch {
 public:
  Launch() = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  virtual ~Launch() = default;

  [[nodiscard]] virtual int device() const = 0;
  [[nodiscard]] virtual cudaStream_t stream() const = 0;
  [[nodiscard]] virtual int multiprocessors() const = 0;     ///< All except those left to communication.
  [[nodiscard]] virtual int compute_capability() const = 0;  ///< 80, 90, 100.

  [[nodiscard]] virtual const DeviceClock& clock() const = 0;

  /// Copies a table from the host to the device, behind what is queued and ahead of what will be. The host memory may
  /// be reused at once; the device memory is good for the kernels queued up to the next call that stages. Every call
  /// copies, so a kernel may use what it was given as a counter.
  [[nodiscard]] virtual const void* stage(const void* host, std::size_t bytes) = 0;
  /// Device memory for the kernels queued next; contents undefined. One at a time: the next call may return the same.
  [[nodiscard]] virtual void* scratch(std::size_t bytes) = 0;
};

// Two implementations of attention. Both throw UnsupportedInput for shapes that no kernel takes and DeviceError where a
// launch fails.

namespace portable {  // mma.sync and cp.async: sm_80 and later
void run(const AttentionForward& op, Launch& launch);
void run(const AttentionBackward& op, Launch& launch);
}  // namespace portable

namespace hopper {  // TMA, mbarrier and wgmma: sm_90a alone
void run(const AttentionForward& op, Launch& launch);
void run(const AttentionBackward& op, Launch& launch);
}  // namespace hopper

}  // namespace hdpsim::kernels::cuda
