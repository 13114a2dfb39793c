#include "sim/network/cluster_links.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

using Names = std::vector<std::string>;

Names unequal_names(const ClusterLinks& links, DeviceId from, DeviceId to) {
  Names names;
  const Route route = links.route(from, to);
  for (const auto& [link, share] : route.binding_links()) names.push_back(links.name(link));
  return names;
}

DegradedLink down(std::int64_t node, std::int64_t nic, LinkDirection direction) {
  return {.kind = DegradedLink::Kind::nic, .unit = node, .index = nic, .direction = direction, .factor = 0};
}

/// Nodes 2 and 3 of four are older: NVLink 150 GB/s, NIC 12.5 GB/s, where the others have 300 and 25.
ClusterSpec mixed() {
  ClusterSpec spec = rail_cluster(4);
  spec.kinds = {{.name = "old", .device = "V100", .speed = 0.3, .nvlink = 150_GBps, .nic = 100_Gbps}};
  spec.kind_ranges = {{2, 3, 0}};
  return spec;
}

/// NICs of two ports; four nodes a ToR set, 16 in all.
ClusterSpec dual_port() {
  ClusterSpec spec = three_tiers(16, 2, 1);
  spec.ports_per_nic = 2;
  return spec;
}

}  // namespace

TEST_CASE("links have the rate of their node's kind", "[links]") {
  const ClusterLinks links(mixed(), {.nvlink = 0.5, .network = 0.8});
  CHECK(links.route(device_at(1, 0), device_at(1, 1)).alone == 150_GBps);
  CHECK(links.route(device_at(2, 0), device_at(2, 1)).alone == 75_GBps);
  CHECK(links.route(device_at(0, 0), device_at(1, 0)).alone == 20_GBps);
  CHECK(links.route(device_at(0, 0), device_at(2, 0)).alone == 10_GBps);
  CHECK(links.route(device_at(3, 5), device_at(2, 5)).alone == 10_GBps);
}

TEST_CASE("switches are built for the fastest NIC", "[links]") {
  ClusterSpec spec = three_tiers(16, 2, 1);
  spec.kinds = {{.name = "old", .device = "V100", .nvlink = 150_GBps, .nic = 100_Gbps}};
  spec.kind_ranges = {{0, 3, 0}};
  const ClusterLinks links(spec, {});
  const Route across = links.route(device_at(0, 0), device_at(9, 0));
  CHECK(across.alone == 100_Gbps);
  CHECK(links.rate(link_at(across, 1)) == 50_GBps);  // 4 nodes x 25 GB/s, oversubscribed twofold
}

TEST_CASE("a port that is down halves its NIC and nothing else", "[links]") {
  ClusterSpec spec = dual_port();
  spec.degraded = {down(1, 3, LinkDirection::out), down(1, 3, LinkDirection::in)};
  for (DegradedLink& link : spec.degraded) link.port = 1;
  const ClusterLinks links(spec, {});
  CHECK(unequal_names(links, device_at(1, 3), device_at(0, 3)) == Names{"node 1 nic 3 out", "node 0 nic 3 in"});
  CHECK(links.route(device_at(1, 3), device_at(0, 3)).alone == 100_Gbps);
  CHECK(links.route(device_at(0, 3), device_at(1, 3)).alone == 100_Gbps);
  CHECK(links.route(device_at(0, 3), device_at(2, 3)).alone == 25_GBps);
}

TEST_CASE("a plane that is down halves the uplinks of its unit and rail", "[links]") {
  ClusterSpec spec = dual_port();
  spec.degraded = {{.kind = DegradedLink::Kind::tier, .tier = 0, .unit = 0, .index = 2, .factor = 0, .port = 0}};
  const ClusterLinks links(spec, {});
  // 4 nodes x 25 GB/s, oversubscribed twofold: 50 GB/s up on each rail.
  CHECK(links.rate(link_at(links.route(device_at(0, 1), device_at(8, 1)), 1)) == 50_GBps);
  CHECK(links.rate(link_at(links.route(device_at(0, 2), device_at(8, 2)), 1)) == 25_GBps);
}

TEST_CASE("past a NIC that is down messages go through the next one of the node", "[links]") {
  ClusterSpec spec = rail_cluster(2);
  spec.degraded = {down(0, 7, LinkDirection::out), down(0, 7, LinkDirection::in)};
  const ClusterLinks links(spec, {});
  CHECK(unequal_names(links, device_at(0, 7), device_at(1, 7)) ==
        Names{"node 0 gpu 7 nvlink out", "node 0 gpu 0 nvlink in", "node 0 nic 0 out", "node 1 nic 0 in",
              "node 1 gpu 0 nvlink out", "node 1 gpu 7 nvlink in"});
  CHECK(unequal_names(links, device_at(1, 7), device_at(0, 7)) ==
        Names{"node 1 gpu 7 nvlink out", "node 1 gpu 0 nvlink in", "node 1 nic 0 out", "node 0 nic 0 in",
              "node 0 gpu 0 nvlink out", "node 0 gpu 7 nvlink in"});
  CHECK(unequal_names(links, device_at(0, 6), device_at(1, 6)) == Names{"node 0 nic 6 out", "node 1 nic 6 in"});
}

TEST_CASE("a NIC that cannot send still receives", "[links]") {
  ClusterSpec spec = rail_cluster(2);
  spec.degraded = {down(0, 3, LinkDirection::out)};
  const ClusterLinks links(spec, {});
  CHECK(unequal_names(links, device_at(1, 3), device_at(0, 3)) == Names{"node 1 nic 3 out", "node 0 nic 3 in"});
  CHECK(unequal_names(links, device_at(0, 3), device_at(1, 3)).size() == 6);
}

TEST_CASE("where the planes of two NICs do not meet, a rail is taken whose planes do", "[links]") {
  ClusterSpec spec = dual_port();
  spec.degraded = {down(0, 0, LinkDirection::out), down(1, 0, LinkDirection::in)};
  spec.degraded[0].port = 0;
  spec.degraded[1].port = 1;
  const ClusterLinks links(spec, {});
  CHECK(unequal_names(links, device_at(0, 0), device_at(1, 0))[2] == "node 0 nic 1 out");
  CHECK(unequal_names(links, device_at(0, 0), device_at(2, 0)) == Names{"node 0 nic 0 out", "node 2 nic 0 in"});
}

TEST_CASE("an uplink that is down is avoided by those that leave its unit alone", "[links]") {
  ClusterSpec spec = dual_port();
  spec.degraded = {{.kind = DegradedLink::Kind::tier, .tier = 0, .unit = 1, .index = 6, .factor = 0}};
  const ClusterLinks links(spec, {});
  CHECK(unequal_names(links, device_at(5, 6), device_at(12, 6)) ==
        Names{"node 5 gpu 6 nvlink out", "node 5 gpu 7 nvlink in", "node 5 nic 7 out", "tor 1 rail 7 up",
              "tor 3 rail 7 down", "node 12 nic 7 in", "node 12 gpu 7 nvlink out", "node 12 gpu 6 nvlink in"});
  CHECK(unequal_names(links, device_at(5, 6), device_at(6, 6)) == Names{"node 5 nic 6 out", "node 6 nic 6 in"});
  CHECK(unequal_names(links, device_at(12, 6), device_at(5, 6)).size() == 4);  // downwards it works
}

TEST_CASE("where messages may go through other devices, no link has one owner", "[links]") {
  ClusterSpec spec = rail_cluster(2);
  const Route whole = ClusterLinks(spec, {}).route(device_at(0, 0), device_at(1, 0));
  CHECK(ClusterLinks(spec, {}).has_one_owner(link_at(whole, 0)));
  spec.degraded = {down(0, 7, LinkDirection::out)};
  CHECK_FALSE(ClusterLinks(spec, {}).has_one_owner(link_at(whole, 0)));
}
