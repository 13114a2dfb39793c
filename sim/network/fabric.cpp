#include "sim/network/fabric.h"

#include "sim/network/impl/fabrics.h"

namespace hdpsim {

bool Fabric::joins_rails(std::size_t /*from*/, std::size_t /*to*/) const {
  return true;
}

std::optional<std::vector<FabricLoad>> Fabric::all_pairs(std::span<const std::size_t> /*nodes*/,
                                                         std::size_t /*rail*/) const {
  return std::nullopt;
}

std::unique_ptr<Fabric> make_fabric(const ClusterSpec& cluster, double efficiency) {
  if (const auto* torus = std::get_if<TorusSpec>(&cluster.fabric)) {
    return make_torus_fabric(*torus, cluster.nics_per_node, efficiency);
  }
  if (const auto* dragonfly = std::get_if<DragonflySpec>(&cluster.fabric)) {
    return make_dragonfly_fabric(*dragonfly, cluster.nics_per_node, cluster.routing, efficiency);
  }
  if (const auto* graph = std::get_if<SwitchGraphSpec>(&cluster.fabric)) {
    if (cluster.routing.policy == Routing::Policy::adaptive) {
      const Bandwidth nic = cluster.fastest_nic().scaled(efficiency);
      return make_spread_graph_fabric(*graph, cluster.nics_per_node, nic, efficiency);
    }
    return make_graph_fabric(*graph, cluster.nics_per_node, cluster.routing.seed, efficiency);
  }
  return make_clos_fabric(cluster, efficiency);
}

}  // namespace hdpsim
