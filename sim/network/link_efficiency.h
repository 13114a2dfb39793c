#pragma once

#include "sim/base/units.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The share of the links' rates that software reaches, and its start-up time per message, from a device profile. The
/// defaults are the bare hardware.
struct LinkEfficiency {
  double nvlink = 1;              ///< Share of the physical rate; in (0, 1].
  double network = 1;             ///< Share of the physical rate of NICs and switch links; in (0, 1].
  Duration nvlink_latency = {};   ///< Start-up of a message inside a node.
  Duration network_latency = {};  ///< Start-up of a message between nodes.
};

/// The efficiency of point-to-point messages. Figures that the profile lacks are those of the bare hardware.
[[nodiscard]] LinkEfficiency message_efficiency(const DeviceProfile& profile);

/// The efficiency of messages that take `factor` times as long; none is faster than its link.
[[nodiscard]] LinkEfficiency slowed(LinkEfficiency efficiency, double factor);

}  // namespace hdpsim
