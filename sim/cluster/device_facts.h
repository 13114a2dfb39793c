#pragma once

#include <cstdint>
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

/// The most NVLinks that a GPU of this compute capability has, or of any that is known.
[[nodiscard]] std::int64_t most_nvlinks_of(int compute_capability);

/// What joins a GPU of a generation to its host, and hosts of that generation to each other, per direction.
struct HostLinks {
  Bandwidth pcie;
  Bandwidth nic;
};
/// Those of a compute capability (in tenths); empty if they are not known.
[[nodiscard]] std::optional<HostLinks> host_links_of(int compute_capability);

}  // namespace hdpsim
