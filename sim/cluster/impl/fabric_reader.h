#pragma once

#include <cstdint>

#include "sim/cluster/fabric_spec.h"
#include "sim/document/reader.h"

namespace hdpsim {

/// The size of the cluster that a fabric has to join.
struct FabricExtent {
  std::int64_t nodes = 0;
  std::int64_t nics_per_node = 1;
};

/// `adaptive`, `ecmp` or `{policy: ecmp, seed: 7}`.
[[nodiscard]] Routing read_routing(const Value& value, Diagnostics& diagnostics);

// Readers of the fabrics of cluster_config.h. Problems, also with the number of nodes, are reported; the result is then
// unusable.
[[nodiscard]] TorusSpec read_torus(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics);
[[nodiscard]] DragonflySpec read_dragonfly(const Value& value, const FabricExtent& extent, Diagnostics& diagnostics);
[[nodiscard]] SwitchGraphSpec read_switch_graph(const Value& value, const FabricExtent& extent,
                                                Diagnostics& diagnostics);

/// Reports NICs without a path over working cables to the NICs of their rail in other nodes, and paths that are too
/// long.
void check_ways(const SwitchGraphSpec& graph, const FabricExtent& extent, const Position& position,
                Diagnostics& diagnostics);

}  // namespace hdpsim
