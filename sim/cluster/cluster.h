#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"

namespace hdpsim {

/// One level of switches above the nodes. A tier joins `fan_in` units of the tier below (nodes, for the first tier); its
/// uplinks carry 1 / oversubscription of what its units can send.
struct SwitchTier {
  std::string name;
  std::int64_t fan_in = 1;
  double oversubscription = 1;  ///< >= 1; 1 never binds.
  Duration latency;             ///< One way, added to a path that turns around in this tier.
};

/// A homogeneous cluster of nodes: what a preset or a cluster file describes.
struct ClusterSpec {
  std::string name;
  std::string device;            ///< Device type, the word that profiles use: "A100-80GB".
  std::int64_t devices = 0;      ///< In all.
  std::int64_t devices_per_node = 1;
  Bytes device_memory;
  Bytes host_memory;             ///< Per node.
  Bandwidth nvlink;              ///< Per device and direction, to the other devices of its node.
  Duration nvlink_latency;
  std::int64_t nics_per_node = 1;
  Bandwidth nic;                 ///< Per NIC and direction.
  Bandwidth pcie;                ///< Per device and direction, to host memory.
  std::int64_t devices_per_pcie_uplink = 1;
  std::vector<SwitchTier> tiers;
  std::map<std::int64_t, double> speed;  ///< Devices that differ: index -> compute speed relative to nominal (0.8: slower).
};

}  // namespace hdpsim
