#include "sim/network/link_efficiency.h"

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
  return efficiency;
}

}  // namespace hdpsim
