#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "sim/document/key_table.h"

namespace hdpsim {

/// The size of the cluster that a fabric has to join.
struct FabricExtent {
  std::int64_t nodes = 0;
  std::int64_t nics_per_node = 1;
};

/// The values of `tiers`, `torus`, `dragonfly`, `graph` and `routing`, with their keys.
[[nodiscard]] KeyShape tiers_shape();
[[nodiscard]] KeyShape torus_shape();
[[nodiscard]] KeyShape dragonfly_shape();
[[nodiscard]] KeyShape graph_shape();
[[nodiscard]] KeyShape routing_shape();

/// One of `tiers`. `is_readable` becomes false if its `fan_in` is not known.
[[nodiscard]] SwitchTier read_tier(const Value::Entry& entry, bool& is_readable, Diagnostics& diagnostics);

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
