#pragma once

#include <memory>

#include "sim/cluster/cluster.h"
#include "sim/network/link_efficiency.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// Every link is divided on its own, without a look at the others: its flows get equal shares, capped flows no more
/// than their cap, and the rest of the link's flows what those leave. A flow's rate is the least of its links' shares.
/// What a flow cannot use because another link holds it back stays unused (max-min fairness would give it away), so
/// rates are never too high and may be too low.
///
/// Adding or removing a flow costs O(its links + the flows on them), and no memory once as many flows were there
/// before. Memory is O(links + most flows at once). The spec must be one that read_cluster accepts.
[[nodiscard]] std::unique_ptr<NetworkModel> make_equal_share(const ClusterSpec& cluster,
                                                             const LinkEfficiency& efficiency = {});

}  // namespace hdpsim
