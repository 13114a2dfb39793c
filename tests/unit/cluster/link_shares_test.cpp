#include "sim/cluster/link_shares.h"

#include "tests/support/catch.h"
#include "tests/unit/cluster/cluster_files.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

// Eight nodes, four a ToR set; two NICs of two ports.
const std::string dual_port = R"(device: X
gpus: 16
node:
  gpus: 2
  gpu_memory: 1 GB
  host_memory: 1 GB
  nvlink: {bandwidth: 100 GB/s}
  nics: {count: 2, bandwidth: 400 Gbit/s, ports: 2}
  pcie: {bandwidth: 32 GB/s}
tiers: {tor: {fan_in: 4}, core: {fan_in: 2}}
)";

LinkShares::Link nic_out(std::int64_t node, std::int64_t nic) {
  return {DegradedLink::Kind::nic, 0, node, nic, LinkDirection::out};
}

}  // namespace

TEST_CASE("a port that is down halves a NIC of two ports", "[links]") {
  const LinkShares shares(cluster_from(dual_port + "links: {node 3 nic 1 port 0: 0}\n"));
  CHECK(shares.share(nic_out(3, 1)) == 0.5);
  CHECK(shares.share(nic_out(3, 0)) == 1);
  CHECK_FALSE(shares.all_up());
}

TEST_CASE("later lines on a link win, a line on all ports over those on single ones", "[links]") {
  const LinkShares shares(cluster_from(
      dual_port + "links: {node 3 nic 1 port 0: 0, node 3 nic 1 out: 0.8, node 3 nic 1 port 1 out: 0.4}\n"));
  CHECK(shares.share(nic_out(3, 1)) == Approx((0.8 + 0.4) / 2));
  CHECK(shares.share({DegradedLink::Kind::nic, 0, 3, 1, LinkDirection::in}) == 0.5);
}

TEST_CASE("messages use the planes that are up at both ends and at the uplinks between", "[links]") {
  const LinkShares shares(
      cluster_from(dual_port + "links: {node 0 nic 0 port 0 out: 0, tor 1 rail 0 plane 1 down: 0, node 2 nic 1: 0}\n"));
  CHECK(shares.planes_between({1, 0}, {2, 0}) == 0b11);
  CHECK(shares.planes_between({0, 0}, {1, 0}) == 0b10);
  CHECK(shares.planes_between({1, 0}, {0, 0}) == 0b11);  // only out is down
  CHECK(shares.planes_between({1, 0}, {4, 0}) == 0b01);  // past the downlink of unit 1
  CHECK(shares.planes_between({0, 0}, {4, 0}) == 0);
  CHECK(shares.planes_between({1, 1}, {2, 1}) == 0);
}

TEST_CASE("links that are down are fine as long as every two nodes share a rail and a plane", "[links]") {
  CHECK(problems_of(dual_port + "links: {node 0 nic 0: 0, node 5 nic 0 port 1: 0, tor 0 rail 0: 0}\n").empty());
}

TEST_CASE("nodes that links which are down cut off are named", "[links]") {
  CHECK(
      problems_of(dual_port + "links: {node 0 nic 0: 0, node 0 nic 1: 0}\n") ==
      R"(cluster.yaml:11:8: error: node 0 has no way to node 1: on no rail is a plane up at both; leave a node out of the job by lowering 'gpus'
)");
  // The planes that are left do not meet: plane 1 of either rail here, plane 0 there.
  CHECK_THAT(problems_of(dual_port + R"(links:
  node 2 nic 0 port 0: 0
  node 2 nic 1 port 0: 0
  node 6 nic 0 port 1: 0
  node 6 nic 1 port 1: 0
)"),
             Contains("node 2 has no way to node 6"));
  CHECK_THAT(problems_of(dual_port + "links: {tor 1 rail 0 up: 0, tor 1 rail 1 up: 0}\n"),
             Contains("node 4 has no way to node 0"));
  CHECK_THAT(problems_of(dual_port + "links: {node 1 gpu 0 nvlink: 0}\n"),
             Contains("a gpu whose NVLink is down has no way to the others of its node"));
}

TEST_CASE("ports and planes that do not exist are refused", "[links]") {
  CHECK_THAT(problems_of(dual_port + "links: {node 0 nic 0 port 2: 0}\n"),
             Contains("there is no link 'node 0 nic 0 port 2': 2 is too high, ports are 0 to 1"));
  CHECK_THAT(problems_of(dual_port + "links: {tor 0 rail 0 plane 2: 0}\n"), Contains("ports are 0 to 1"));
  CHECK_THAT(problems_of(dual_port + "links: {node 0 nic 0 plane 1: 0}\n"), Contains("names no link"));
  CHECK_THAT(problems_of(dual_port + "links: {node 0 nic 0 port: 0}\n"), Contains("names no link"));
}

TEST_CASE("the PCIe link of a gpu without NVLink is named as links.csv names it", "[links]") {
  std::string without = dual_port;
  without.erase(without.find("  nvlink"), std::string("  nvlink: {bandwidth: 100 GB/s}\n").size());
  CHECK(cluster_from(without + "links: {node 1 gpu 1 pcie out: 0.5}\n").degraded.size() == 1);
  CHECK_THAT(problems_of(without + "links: {node 1 gpu 1 nvlink out: 0.5}\n"), Contains("names no link"));
}

TEST_CASE("ports need tiers, and there are at most eight", "[cluster]") {
  std::string torus = dual_port;
  torus.replace(torus.find("tiers:"), std::string::npos, "torus: {shape: [8], bandwidth: 1 GB/s}\n");
  CHECK_THAT(problems_of(torus), Contains("NICs of several ports need tiers"));
  std::string many = dual_port;
  many.replace(many.find("ports: 2"), 8, "ports: 9");
  CHECK_THAT(problems_of(many), Contains("'ports' is 9"));
}

TEST_CASE("a rate of zero is refused in every fabric", "[cluster]") {
  const std::string nodes = dual_port.substr(0, dual_port.find(", ports"));
  const std::string rest = "}\n  pcie: {bandwidth: 32 GB/s}\n";
  CHECK_THAT(problems_of(nodes + rest + "torus: {shape: [8], bandwidth: 0 GB/s}\n"),
             Contains("must be from 1 MB/s to 1000 TB/s"));
  CHECK_THAT(problems_of(nodes + rest + "torus: {shape: [8], bandwidth: 2000 TB/s}\n"),
             Contains("it must be from 1 MB/s to 1000 TB/s"));
  CHECK_THAT(problems_of(nodes + rest +
                         "dragonfly: {groups: 2, leaves: 2, spines: 1, nodes_per_leaf: 2, bandwidth: 1 GB/s, "
                         "global_bandwidth: 0 GB/s}\n"),
             Contains("'global_bandwidth' is 0 GB/s, it must be from 1 MB/s to 1000 TB/s"));
}
