#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "kernels/cpu/cores.h"
#include "kernels/exec/executor.h"
#include "kernels/transport/transport.h"
#include "sim/app/real/execution_work.h"

namespace hdpsim::app {

/// The work of one device in a training.
using DeviceWork = std::function<void(const kernels::exec::JobDevice&)>;

/// UnsupportedInput for a training that devices of this kind cannot run, DeviceError if there are no such devices. Call
/// it before anything is started.
void require_devices(DeviceKind kind, const Work& work);

/// The type of the tensors' elements.
[[nodiscard]] kernels::Element element_of(DeviceKind kind);

/// Runs `work` on `devices` devices, each a thread of this process: cores, or virtual ranks that share the first GPU.
/// Returns when all have ended; rethrows the error that came first.
void run_device_threads(DeviceKind kind, int devices, std::chrono::milliseconds limit, const DeviceWork& work);

/// Runs `work` on the device of this process, which is one rank of `host`: a core, or a GPU of its own, the n-th of its
/// host for the n-th rank there. `seats` are those of all ranks.
void run_device_process(DeviceKind kind, kernels::Transport& host, const std::vector<kernels::Seat>& seats,
                        std::chrono::milliseconds limit, const DeviceWork& work);

/// The share of its device's speed that each rank has while all of them compute.
[[nodiscard]] double device_share(DeviceKind kind, const std::vector<kernels::Seat>& seats, bool are_threads);

}  // namespace hdpsim::app
