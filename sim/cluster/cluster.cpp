#include "sim/cluster/cluster.h"

namespace hdpsim {

NodeId ClusterSpec::node_of(DeviceId which) const {
  return NodeId(which.index() / static_cast<std::size_t>(devices_per_node));
}

std::int64_t ClusterSpec::nic_of(DeviceId which) const {
  return static_cast<std::int64_t>(which.index()) / devices_per_nic();
}

double ClusterSpec::speed_of(DeviceId which) const {
  const auto found = speed.find(static_cast<std::int64_t>(which.index()));
  return found == speed.end() ? 1.0 : found->second;
}

std::int64_t ClusterSpec::nodes_per_unit(std::size_t tier) const {
  std::int64_t joined = 1;
  for (std::size_t below = 0; below <= tier; ++below) joined *= tiers[below].fan_in;
  return joined;
}

}  // namespace hdpsim
