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

/// False, with a problem and an example reported, if the value is not a map.
[[nodiscard]] bool require_map(const Value& value, std::string_view what, std::string_view example,
                               Diagnostics& diagnostics);

}  // namespace hdpsim
