#pragma once

#include "sim/cluster/cluster.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// Nodes of 8 devices with a NIC each and one tier over all of them: NVLink 300 GB/s, NIC 25 GB/s.
inline ClusterSpec rail_cluster(std::int64_t nodes) {
  ClusterSpec spec;
  spec.name = "rail";
  spec.device = "A100-80GB";
  spec.devices = 8 * nodes;
  spec.devices_per_node = 8;
  spec.nvlink = 300_GBps;
  spec.nvlink_latency = 1_us;
  spec.nics_per_node = 8;
  spec.nic = 25_GBps;
  spec.tiers = {{.name = "tor", .fan_in = nodes, .oversubscription = 1, .latency = 2_us}};
  return spec;
}

/// The same with 4 nodes under a ToR set, 2 of these under an aggregation unit, and a core over all.
inline ClusterSpec three_tiers(std::int64_t nodes, double tor_oversubscription, double aggregation_oversubscription) {
  ClusterSpec spec = rail_cluster(nodes);
  spec.tiers = {{.name = "tor", .fan_in = 4, .oversubscription = tor_oversubscription, .latency = 2_us},
                {.name = "aggregation", .fan_in = 2, .oversubscription = aggregation_oversubscription, .latency = 4_us},
                {.name = "core", .fan_in = 1 << 20, .oversubscription = 1, .latency = 6_us}};
  return spec;
}

/// The link of a route at this place.
inline LinkId link_at(const Route& route, std::size_t place) {
  return route.binding_links()[place].link;
}

inline DeviceId device_at(std::size_t node, std::size_t local) {
  return DeviceId(8 * node + local);
}

}  // namespace hdpsim
