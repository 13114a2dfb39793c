#include "sim/engine/site.h"

#include "sim/network/fair_share_network.h"

namespace hdpsim {

std::unique_ptr<Site> make_site(const ClusterSpec& cluster, const DeviceProfile& profile) {
  auto site = std::make_unique<Site>();
  site->cluster = cluster;
  site->profile = profile;
  site->cost = make_cost_model(profile);
  site->watched_cost = std::make_unique<WatchedCostModel>(*site->cost);
  site->network = make_fair_share_network(cluster, message_efficiency(profile));
  site->links = std::make_unique<ClusterLinks>(cluster, LinkEfficiency{});
  return site;
}

}  // namespace hdpsim
