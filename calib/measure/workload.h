#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/repeat.h"
#include "calib/measure/subject.h"

namespace hdpsim::calib {

/// A subject that is ready to be timed: its tensors are on the device, filled with random numbers (zeros would let the
/// chip run faster than any training does). Caches are warm, as in training, where a kernel's inputs have just been
/// written; tensors larger than the caches do not fit them anyway.
[[nodiscard]] Repeatable prepare(Device& device, const DeviceSpeed& speed, const Subject& subject, std::uint64_t seed);

/// Bytes of device memory that prepare() needs.
[[nodiscard]] std::int64_t memory_of(const Subject& subject, kernels::Element element);

/// Kernels that memory bounds, by name: rms_norm_forward, ..., adam.
[[nodiscard]] std::vector<std::string> memory_bound_kernels();

}  // namespace hdpsim::calib
