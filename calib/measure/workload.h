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

/// A subject that is ready to be timed: its tensors are on the device, filled with random numbers (with zeros the chip
/// would run faster than in any training).
[[nodiscard]] Repeatable prepare(Device& device, const DeviceSpeed& speed, const Subject& subject, std::uint64_t seed);

/// Whether a subject starts with empty caches. Kernels do: in training their tensors, of all heads and all tokens of a
/// micro-batch, are larger than the caches or were touched long ago, while those of a measurement may fit them. For
/// messages the device decides.
[[nodiscard]] bool starts_cold(const Device& device, const Subject& subject);

/// Bytes of device memory that prepare() needs.
[[nodiscard]] std::int64_t memory_of(const Subject& subject, kernels::Element element);

/// Time of the smallest kernel on a device: the addition of one number.
[[nodiscard]] double launch_seconds(Device& device);

/// Names of memory-bound kernels: rms_norm_forward, ..., adam.
[[nodiscard]] std::vector<std::string> memory_bound_kernels();

}  // namespace hdpsim::calib
