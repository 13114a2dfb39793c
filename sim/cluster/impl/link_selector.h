#pragma once

#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/cluster.h"

namespace hdpsim {

/// The links that a key of `links` names, one or both directions, with factor 1: `node 3 nic 2`, `node 3 nic 2 port 1`,
/// `node 3 gpu 1 nvlink out`, `tor 1 rail 0 up`, `tor 1 rail 0 plane 1 up`. Empty, with the problem reported at
/// `position`, if it names none.
[[nodiscard]] std::vector<DegradedLink> parse_link_selector(std::string_view text, const ClusterSpec& cluster,
                                                            const Position& position, Diagnostics& diagnostics);

}  // namespace hdpsim
