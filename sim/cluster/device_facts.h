#pragma once

#include <string_view>

namespace hdpsim {

/// The compute capability of a device type in tenths (90: 9.0), by the first word of its name: `H100-80GB` is an H100.
/// From NVIDIA's list, developer.nvidia.com/cuda-gpus. Of a device that is not there 80: the oldest that has what most
/// have.
[[nodiscard]] int compute_capability_of(std::string_view device);

}  // namespace hdpsim
