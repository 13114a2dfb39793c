#pragma once

#include "sim/base/units.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// What software leaves of the links and adds to every message, as a device profile knows it. The defaults are the bare
/// hardware.
struct LinkEfficiency {
  double nvlink = 1;              ///< Of the physical rate; in (0, 1].
  double network = 1;             ///< Of the physical rate of NICs and switch links; in (0, 1].
  Duration nvlink_latency = {};   ///< Start-up of a message inside a node.
  Duration network_latency = {};  ///< Start-up of a message between nodes.
};

/// Of point-to-point messages. What the profile does not know is the bare hardware.
[[nodiscard]] LinkEfficiency message_efficiency(const DeviceProfile& profile);

/// Of messages that take `factor` times as long; none is faster than its link.
[[nodiscard]] LinkEfficiency slowed(LinkEfficiency efficiency, double factor);

}  // namespace hdpsim
