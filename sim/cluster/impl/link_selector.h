#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/fabric_spec.h"

namespace hdpsim {

/// The links that a key of `links` names, one or both directions, with factor 1: `node 3 nic 2`, `node 3 nic 2 port 1`,
/// `node 3 gpu 1 nvlink out`, `tor 1 rail 0 up`, `tor 1 rail 0 plane 1 up`. Empty, with the problem reported at
/// `position`, if it names none.
[[nodiscard]] std::vector<DegradedLink> parse_link_selector(std::string_view text, const ClusterSpec& cluster,
                                                            const Position& position, Diagnostics& diagnostics);

/// Reduces a cable to `share` of its rate, in both directions. `name` is its name in links.csv: `leaf0 to spine` for
/// the first cable between the two, `leaf0 to spine 2` for the third. 0: the cable is missing. False if there is no
/// such cable.
[[nodiscard]] bool degrade_cable(SwitchGraphSpec& graph, std::string_view name, double share);

/// Reports NICs without a path over working cables to the NICs of their rail in other nodes, and paths that are too
/// long.
void check_paths(const SwitchGraphSpec& graph, std::int64_t nics_per_node, const Position& position,
                 Diagnostics& diagnostics);

}  // namespace hdpsim
