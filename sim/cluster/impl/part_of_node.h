#pragma once

#include <cstdint>
#include <optional>

#include "sim/cluster/cluster.h"

namespace hdpsim {

/// The devices that each node gives to a job of `devices` devices: all of a node or, where jobs get trays of a node
/// (ClusterSpec::devices_per_tray), equally many of as few nodes as possible. Empty where that would take more than
/// twice the nodes that hold so many devices, or halve a NIC or a PCIe uplink. `node` is a cluster of whole nodes.
[[nodiscard]] std::optional<std::int64_t> devices_of_each_node(const ClusterSpec& node, std::int64_t devices);

/// Leaves `devices` devices of every node, with their share of its NICs and of the memory of its host.
void take_part_of_nodes(ClusterSpec& cluster, std::int64_t devices);

}  // namespace hdpsim
