#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/random.h"
#include "sim/cluster/cluster.h"

namespace hdpsim::tests {

/// What joins the nodes of a random cluster.
enum class FabricKind { tiers, ecmp, torus, dragonfly, graph };
inline constexpr FabricKind fabric_kinds[] = {FabricKind::tiers, FabricKind::ecmp, FabricKind::torus,
                                              FabricKind::dragonfly, FabricKind::graph};

inline std::string_view name_of(FabricKind kind) {
  constexpr std::string_view names[] = {"tiers", "ecmp", "torus", "dragonfly", "graph"};
  return names[static_cast<std::size_t>(kind)];
}

template <std::size_t n>
std::int64_t one_of(RandomStream& random, const std::int64_t (&values)[n]) {
  return values[random.below(n)];
}

/// Two rows of nodes where their number is even, else one.
inline TorusSpec random_torus(std::int64_t nodes, RandomStream& random) {
  const std::int64_t rows = nodes % 2 == 0 ? one_of(random, {1, 2}) : 1;
  return {.shape = {nodes / rows, rows}, .bandwidth = 1_Gbps * one_of(random, {100, 200}), .latency = 300_ns};
}

inline DragonflySpec random_dragonfly(std::int64_t nodes, RandomStream& random) {
  DragonflySpec spec{.leaves = one_of(random, {1, 2}),
                     .spines = one_of(random, {1, 2}),
                     .nodes_per_leaf = one_of(random, {1, 2}),
                     .global_links = one_of(random, {1, 2}),
                     .local = 1_Gbps * one_of(random, {100, 200, 400}),
                     .global = 1_Gbps * one_of(random, {100, 200}),
                     .latency = 300_ns,
                     .global_latency = 1_us};
  const std::int64_t per_group = spec.leaves * spec.nodes_per_leaf;
  spec.groups = (nodes + per_group - 1) / per_group;
  return spec;
}

/// A random tree of switches, some more cables, every NIC on any switch.
inline SwitchGraphSpec random_graph(std::int64_t nics, RandomStream& random) {
  SwitchGraphSpec graph;
  const std::size_t switches = 2 + random.below(5);
  const auto add_cable = [&](std::size_t from, std::size_t to) {
    graph.cables.push_back({from, to, 1_Gbps * one_of(random, {100, 200, 400}), one_of(random, {1, 1, 2})});
  };
  for (std::size_t i = 0; i < switches; ++i) {
    graph.switches.push_back({"switch" + std::to_string(i), 300_ns});
    if (i > 0) add_cable(random.below(i), i);
  }
  for (std::uint64_t more = random.below(4); more > 0; --more) {
    const std::size_t from = random.below(switches);
    const std::size_t to = random.below(switches);
    if (from != to) add_cable(from, to);
  }
  for (std::int64_t nic = 0; nic < nics; ++nic) graph.attached.push_back(random.below(switches));
  return graph;
}

/// Joins the nodes of `cluster` by a random fabric of this kind. Kinds of tiers keep the cluster's own.
inline void join_nodes(ClusterSpec& cluster, FabricKind kind, RandomStream& random) {
  cluster.routing.seed = random.next();
  switch (kind) {
    case FabricKind::tiers:
      return;
    case FabricKind::ecmp:
      cluster.routing.policy = Routing::Policy::ecmp;
      return;
    case FabricKind::torus:
      cluster.fabric = random_torus(cluster.nodes(), random);
      break;
    case FabricKind::dragonfly:
      cluster.fabric = random_dragonfly(cluster.nodes(), random);
      break;
    case FabricKind::graph:
      cluster.fabric = random_graph(cluster.nodes() * cluster.nics_per_node, random);
      break;
  }
  cluster.tiers.clear();
}

/// Some NICs, some NVLinks and, where there are tiers, some uplinks carry less than their kind.
inline void degrade_links(ClusterSpec& cluster, RandomStream& random) {
  const auto any = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  };
  const auto degrade = [&](DegradedLink::Kind kind, std::int64_t units, std::int64_t per_unit) {
    cluster.degraded.push_back({.kind = kind,
                                .unit = any(units),
                                .index = any(per_unit),
                                .direction = random.below(2) == 0 ? LinkDirection::out : LinkDirection::in,
                                .factor = 0.2 + 0.7 * random.uniform()});
  };
  if (cluster.nodes() > 1) degrade(DegradedLink::Kind::nic, cluster.nodes(), cluster.nics_per_node);
  if (cluster.devices_per_node > 1) degrade(DegradedLink::Kind::nvlink, cluster.nodes(), cluster.devices_per_node);
  if (cluster.tiers.empty()) return;
  const std::int64_t units = (cluster.nodes() + cluster.nodes_per_unit(0) - 1) / cluster.nodes_per_unit(0);
  if (units > 1) degrade(DegradedLink::Kind::tier, units, cluster.nics_per_node);
}

/// The devices of a node talk over PCIe, two behind each PCIe switch.
inline void drop_nvlink(ClusterSpec& cluster) {
  cluster.nvlink = {};
  cluster.devices_per_pcie_uplink = cluster.devices_per_node % 2 == 0 ? 2 : 1;
}

/// Everything at once: `nodes` nodes of 1 to 8 devices and 1 to 8 NICs, two tiers of which the lower may be
/// oversubscribed.
inline ClusterSpec random_cluster(std::int64_t nodes, FabricKind kind, RandomStream& random) {
  ClusterSpec cluster;
  cluster.name = "random";
  cluster.devices_per_node = one_of(random, {1, 2, 4, 8});
  cluster.devices = nodes * cluster.devices_per_node;
  cluster.nics_per_node = std::max<std::int64_t>(1, cluster.devices_per_node / one_of(random, {1, 1, 2}));
  cluster.nvlink = 1_GBps * one_of(random, {100, 300, 450});
  cluster.nvlink_latency = 1_us;
  cluster.nic = 1_Gbps * one_of(random, {100, 200, 400});
  cluster.pcie = 1_GBps * one_of(random, {16, 32, 64});
  cluster.tiers = {{.name = "leaf",
                    .fan_in = one_of(random, {2, 4}),
                    .oversubscription = static_cast<double>(one_of(random, {1, 2, 4})),
                    .latency = 1_us},
                   {.name = "spine", .fan_in = 1 << 20, .oversubscription = 1, .latency = 2_us}};
  join_nodes(cluster, kind, random);
  if (random.below(4) == 0) drop_nvlink(cluster);
  if (random.below(2) == 0) degrade_links(cluster, random);
  return cluster;
}

}  // namespace hdpsim::tests
