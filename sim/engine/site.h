#pragma once

#include <memory>

#include "sim/cluster/cluster.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/coverage.h"
#include "sim/network/cluster_links.h"
#include "sim/network/network_model.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// What all jobs of a simulated cluster share: its devices' costs and its network. Two sites share nothing, so each
/// thread can have its own.
struct Site {
  ClusterSpec cluster;
  DeviceProfile profile;
  std::unique_ptr<CostModel> cost;
  std::unique_ptr<WatchedCostModel> watched_cost;  ///< The same costs; counts what simulations ask.
  std::unique_ptr<NetworkModel> network;
  std::unique_ptr<ClusterLinks> links;  ///< At their full rates; collectives know what share of them they reach.
};

[[nodiscard]] std::unique_ptr<Site> make_site(const ClusterSpec& cluster, const DeviceProfile& profile);

}  // namespace hdpsim
