#pragma once

#include <memory>

#include "sim/cluster/cluster.h"
#include "sim/network/cluster_links.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// The links of a cluster, shared max-min fairly: see FairShare for the rule and the costs. Rates are rounded down to
/// whole B/s. `cluster` must be a spec that read_cluster accepts.
[[nodiscard]] std::unique_ptr<NetworkModel> make_fair_share_network(const ClusterSpec& cluster,
                                                                    const LinkEfficiency& efficiency = {});

}  // namespace hdpsim
