#pragma once

#include <optional>
#include <string_view>

#include "sim/base/units.h"

namespace hdpsim {

// What is known of types of devices: configs/devices.yaml, as it was when the program was built.

/// The compute capability of an unknown device type, which is taken to be none of NVIDIA's.
inline constexpr int unknown_capability = 0;
/// The compute capability of a device type in tenths (90: 9.0), by the first word of its name: `H100-80GB` is an H100.
[[nodiscard]] int compute_capability_of(std::string_view device);

/// What one NVLink of devices of this compute capability (in tenths) carries in one direction. Empty if it is not
/// known.
[[nodiscard]] std::optional<Bandwidth> nvlink_rate_of(int compute_capability);

}  // namespace hdpsim
