#include "sim/network/link_efficiency.h"

#include <algorithm>

namespace hdpsim {

LinkEfficiency message_efficiency(const DeviceProfile& profile) {
  LinkEfficiency efficiency;
  if (profile.nvlink && profile.nvlink->send_recv) {
    efficiency.nvlink = profile.nvlink->send_recv->efficiency();
    efficiency.nvlink_latency = profile.nvlink->send_recv->latency;
  }
  if (profile.network && profile.network->send_recv) {
    efficiency.network = profile.network->send_recv->efficiency();
    efficiency.network_latency = profile.network->send_recv->latency;
  }
  return slowed(efficiency, profile.factors[CostFamily::messages]);
}

LinkEfficiency slowed(LinkEfficiency efficiency, double factor) {
  if (factor == 1) return efficiency;
  efficiency.nvlink = std::min(1.0, efficiency.nvlink / factor);
  efficiency.network = std::min(1.0, efficiency.network / factor);
  efficiency.nvlink_latency = efficiency.nvlink_latency.scaled(factor);
  efficiency.network_latency = efficiency.network_latency.scaled(factor);
  return efficiency;
}

}  // namespace hdpsim
