#pragma once

#include <string_view>

namespace hdpsim {

/// Of a device type that nobody has said anything about: none of NVIDIA's, as far as is known.
inline constexpr int unknown_capability = 0;
/// The compute capability of a device type in tenths (90: 9.0), by the first word of its name: `H100-80GB` is an H100.
/// From NVIDIA's list, developer.nvidia.com/cuda-gpus.
[[nodiscard]] int compute_capability_of(std::string_view device);

}  // namespace hdpsim
