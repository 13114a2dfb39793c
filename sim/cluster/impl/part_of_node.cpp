#include "sim/cluster/impl/part_of_node.h"

#include <algorithm>

#include "sim/base/division.h"

namespace hdpsim {
namespace {

bool can_give(const ClusterSpec& node, std::int64_t devices) {
  const std::int64_t tray = *node.devices_per_tray;
  const bool is_in_trays = devices % tray == 0 || devices < tray;
  const std::int64_t uplink = std::min(node.devices_per_pcie_uplink, devices);
  return is_in_trays && devices % uplink == 0 && devices * node.nics_per_node % node.devices_per_node == 0;
}

}  // namespace

std::optional<std::int64_t> devices_of_each_node(const ClusterSpec& node, std::int64_t devices) {
  if (devices % node.devices_per_node == 0) return node.devices_per_node;
  if (!node.devices_per_tray) return std::nullopt;
  const std::int64_t least = divided(devices, node.devices_per_node);
  for (std::int64_t nodes = least; nodes <= 2 * least; ++nodes) {
    if (devices % nodes == 0 && can_give(node, devices / nodes)) return devices / nodes;
  }
  return std::nullopt;
}

void take_part_of_nodes(ClusterSpec& cluster, std::int64_t devices) {
  const double part = static_cast<double>(devices) / static_cast<double>(cluster.devices_per_node);
  cluster.nics_per_node = devices * cluster.nics_per_node / cluster.devices_per_node;
  cluster.host_memory = cluster.host_memory.scaled(part);
  cluster.devices_per_pcie_uplink = std::min(cluster.devices_per_pcie_uplink, devices);
  cluster.devices_per_node = devices;
}

}  // namespace hdpsim
