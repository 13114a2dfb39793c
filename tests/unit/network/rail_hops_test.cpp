#include "sim/network/rail_hops.h"

#include "sim/network/fair_share_network.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// Nodes of four devices with two NICs.
ClusterSpec nodes_of_four(std::int64_t nodes) {
  ClusterSpec cluster;
  cluster.devices = 4 * nodes;
  cluster.devices_per_node = 4;
  cluster.nics_per_node = 2;
  cluster.nvlink = 300_GBps;
  cluster.nic = 25_GBps;
  cluster.pcie = 32_GBps;
  cluster.tiers = {{.name = "switch", .fan_in = nodes}};
  return cluster;
}

std::vector<std::string> names_of(const NetworkModel& network, const Route& route) {
  std::vector<std::string> names;
  for (const LinkId link : route.binding_links()) names.push_back(network.link_name(link));
  return names;
}

TEST_CASE("a collective of a job goes from each of its nodes to the next on every rail", "[network]") {
  const ClusterSpec cluster = nodes_of_four(4);
  const auto network = make_fair_share_network(cluster);
  const NodeList nodes({NodeId(0), NodeId(2), NodeId(3)});
  const CollectiveGroup pool{.devices = 6, .devices_per_node = 2, .first = DeviceId(0), .last = DeviceId(14)};
  const RailHops hops = rail_hops(*network, cluster, pool, nodes);
  REQUIRE(hops.routes.size() == 3 * 2);
  using Names = std::vector<std::string>;
  CHECK(names_of(*network, hops.routes[0]) == Names{"node 0 nic 0 out", "node 2 nic 0 in"});
  CHECK(names_of(*network, hops.routes[1]) == Names{"node 0 nic 1 out", "node 2 nic 1 in"});
  CHECK(names_of(*network, hops.routes[5]) == Names{"node 3 nic 1 out", "node 0 nic 1 in"});
  // Each device of a node brings half of the data to the ring over three nodes, and two of them share a NIC.
  CHECK(hops.share == Approx(2.0 / 3 * 2 / 2));
}

TEST_CASE("a collective within a node sends nothing between nodes", "[network]") {
  const ClusterSpec cluster = nodes_of_four(2);
  const auto network = make_fair_share_network(cluster);
  const CollectiveGroup pool{.devices = 4, .devices_per_node = 4, .first = DeviceId(4), .last = DeviceId(7)};
  CHECK(rail_hops(*network, cluster, pool, NodeList({NodeId(1)})).routes.empty());
}

}  // namespace
}  // namespace hdpsim
