#pragma once

#include <memory>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

namespace cuda {
class Launch;  // kernels/cuda/launch.h
}

/// The attention kernels that a backend runs. `best`: the Hopper kernels on devices of compute capability 9.0, the
/// portable ones elsewhere.
enum class AttentionPath { best, portable };

/// NVIDIA GPUs that this program can use; 0 also where no driver is installed or the driver is too old.
[[nodiscard]] int cuda_device_count();

/// One GPU and one stream on it, in bf16. Several backends of one device are several streams. DeviceError where there
/// is no such device, the driver is too old or the device is older than compute capability 8.0.
///
/// time() holds the stream with a kernel that spins until the runs are queued. Work that synchronises or allocates
/// opens this gate early, and so does a quarter of a second: nothing can hang, but such a time may hold launches.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(int device = 0, AttentionPath path = AttentionPath::best);

/// The queue of a backend of make_cuda_backend(); UnsupportedInput for any other. Lives as long as the backend.
[[nodiscard]] cuda::Launch& launch_of(Backend& backend);

}  // namespace hdpsim::kernels
