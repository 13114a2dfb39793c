#include "sim/network/cluster_links.h"

#include "sim/base/check.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

std::vector<std::string> names_of_route(const ClusterLinks& links, const Route& route) {
  std::vector<std::string> names;
  for (const auto& [link, share] : route.binding_links()) names.push_back(links.name(link));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a message inside a node takes the sender's and the receiver's NVLink", "[links]") {
  const ClusterLinks links(rail_cluster(2), {});
  const Route route = links.route(device_at(1, 2), device_at(1, 5));
  CHECK(names_of_route(links, route) == Names{"node 1 gpu 2 nvlink out", "node 1 gpu 5 nvlink in"});
  CHECK(route.alone == 300_GBps);
  CHECK(route.latency == 1_us);
}

TEST_CASE("a message between nodes goes out by the sender's NIC and in by the receiver's", "[links]") {
  const ClusterLinks links(rail_cluster(4), {});
  const Route route = links.route(device_at(0, 7), device_at(3, 2));
  CHECK(names_of_route(links, route) == Names{"node 0 nic 7 out", "node 3 nic 2 in"});
  CHECK(route.alone == 25_GBps);
}

TEST_CASE("parts of a message by all NICs pass the devices beside its sender and its receiver", "[links]") {
  ClusterSpec spec = rail_cluster(4);
  const auto parts_of = [&](DeviceId from, DeviceId to) {
    const ClusterLinks links(spec, {});
    std::vector<Names> parts;
    for (const Route& route : links.routes_by_all_nics(from, to)) parts.push_back(names_of_route(links, route));
    return parts;
  };
  const std::vector<Names> parts = parts_of(device_at(0, 7), device_at(3, 2));
  REQUIRE(parts.size() == 8);
  CHECK(parts[0] == Names{"node 0 gpu 7 nvlink out", "node 0 gpu 0 nvlink in", "node 0 nic 0 out", "node 3 nic 0 in",
                          "node 3 gpu 0 nvlink out", "node 3 gpu 2 nvlink in"});
  CHECK(parts[2] == Names{"node 0 gpu 7 nvlink out", "node 0 gpu 2 nvlink in", "node 0 nic 2 out", "node 3 nic 2 in"});
  CHECK(parts[7] == Names{"node 0 nic 7 out", "node 3 nic 7 in", "node 3 gpu 7 nvlink out", "node 3 gpu 2 nvlink in"});

  SECTION("within a node there is one route") {
    CHECK(parts_of(device_at(1, 2), device_at(1, 5)) ==
          std::vector<Names>{{"node 1 gpu 2 nvlink out", "node 1 gpu 5 nvlink in"}});
  }
  SECTION("rails that are down at either end are left out") {
    spec.degraded = {
        {.kind = DegradedLink::Kind::nic, .unit = 0, .index = 1, .direction = LinkDirection::out, .factor = 0},
        {.kind = DegradedLink::Kind::nic, .unit = 3, .index = 4, .direction = LinkDirection::in, .factor = 0}};
    CHECK(parts_of(device_at(0, 7), device_at(3, 2)).size() == 6);
    CHECK(parts_of(device_at(0, 7), device_at(2, 2)).size() == 7);
  }
}

TEST_CASE("devices that have one NIC together use it by turns", "[links]") {
  ClusterSpec spec = rail_cluster(2);
  spec.nics_per_node = 4;
  const ClusterLinks links(spec, {});
  const auto first_link = [&](std::size_t local) {
    return link_at(links.route(device_at(0, local), device_at(1, 0)), 0);
  };
  CHECK(links.name(first_link(4)) == "node 0 nic 2 out");
  CHECK(first_link(4) == first_link(5));
  CHECK(first_link(5) != first_link(6));
  CHECK_FALSE(links.has_one_owner(first_link(4)));
}

TEST_CASE("the latency is that of the start-up and of the tier where the path turns around", "[links]") {
  const LinkEfficiency efficiency{.nvlink_latency = 3_us, .network_latency = 10_us};
  const ClusterLinks links(three_tiers(64, 1, 1), efficiency);
  const auto latency_to = [&](std::size_t node, std::size_t local) {
    return links.route(device_at(0, 0), device_at(node, local)).latency;
  };
  CHECK(latency_to(0, 1) == 3_us + 1_us);
  CHECK(latency_to(3, 0) == 10_us + 2_us);  // the last node of the first ToR set
  CHECK(latency_to(4, 0) == 10_us + 4_us);  // the first of the second one
  CHECK(latency_to(7, 0) == 10_us + 4_us);
  CHECK(latency_to(8, 0) == 10_us + 6_us);  // another aggregation unit
  CHECK(latency_to(63, 7) == 10_us + 6_us);
}

TEST_CASE("links carry their physical rate times what software leaves of it", "[links]") {
  const ClusterLinks links(rail_cluster(2), {.nvlink = 0.5, .network = 0.8});
  CHECK(links.route(device_at(0, 0), device_at(0, 1)).alone == 150_GBps);
  CHECK(links.route(device_at(0, 0), device_at(1, 0)).alone == 20_GBps);
}

TEST_CASE("switch links that can never bind are not there", "[links]") {
  const ClusterLinks links(three_tiers(16, 1, 1), {});
  const std::size_t devices = 16 * 8;
  CHECK(links.count() == 2 * devices + 2 * devices);  // NVLinks and NICs
  CHECK(links.route(device_at(0, 0), device_at(15, 0)).links.size() == 2);
}

TEST_CASE("an oversubscribed tier has an uplink and a downlink for each unit and rail", "[links]") {
  const ClusterLinks links(three_tiers(16, 2, 1), {});
  const Route route = links.route(device_at(1, 3), device_at(14, 5));
  CHECK(names_of_route(links, route) ==
        Names{"node 1 nic 3 out", "tor 0 rail 3 up", "tor 3 rail 5 down", "node 14 nic 5 in"});
  const std::size_t devices = 16 * 8;
  const std::size_t tor_sets = 16 / 4;
  CHECK(links.count() == 4 * devices + tor_sets * 8 * 2);
  // 4 nodes x 25 GB/s, oversubscribed twofold. One flow alone is still limited by its NIC.
  CHECK(links.rate(link_at(route, 1)) == 50_GBps);
  CHECK(route.alone == 25_GBps);
}

TEST_CASE("a degraded link slows what passes it, in its direction alone", "[links]") {
  ClusterSpec spec = three_tiers(16, 1, 1);
  spec.degraded = {
      {.kind = DegradedLink::Kind::nic, .unit = 3, .index = 2, .factor = 0.5},
      {.kind = DegradedLink::Kind::nvlink, .unit = 1, .index = 4, .direction = LinkDirection::in, .factor = 0.25}};
  const ClusterLinks links(spec, {});
  CHECK(links.route(device_at(3, 2), device_at(0, 2)).alone == 100_Gbps);
  CHECK(links.route(device_at(0, 2), device_at(3, 2)).alone == 25_GBps);
  CHECK(links.route(device_at(1, 0), device_at(1, 4)).alone == 75_GBps);
  CHECK(links.route(device_at(1, 4), device_at(1, 0)).alone == 300_GBps);
  CHECK(links.route(device_at(2, 0), device_at(2, 4)).alone == 300_GBps);
}

TEST_CASE("pairs of devices are counted one by one where a link is down, for messages go around it", "[links]") {
  ClusterSpec spec = three_tiers(16, 1, 1);
  const std::vector<DeviceId> devices = {device_at(0, 2), device_at(1, 2), device_at(3, 2)};
  CHECK(ClusterLinks(spec, {}).all_pairs(devices).has_value());
  spec.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 3, .index = 2, .factor = 0}};
  CHECK_FALSE(ClusterLinks(spec, {}).all_pairs(devices).has_value());
}

TEST_CASE("a degraded uplink of a tier that cannot bind otherwise is there", "[links]") {
  ClusterSpec spec = three_tiers(16, 1, 1);
  spec.degraded = {{.kind = DegradedLink::Kind::tier, .tier = 0, .unit = 1, .index = 6, .factor = 0.125}};
  const ClusterLinks links(spec, {});
  // Unit 1 holds nodes 4 to 7, whose four NICs of rail 6 share an uplink of 4 x 25 GB/s: an eighth of it is left.
  const Route across = links.route(device_at(5, 6), device_at(12, 6));
  CHECK(names_of_route(links, across) ==
        Names{"node 5 nic 6 out", "tor 1 rail 6 up", "tor 3 rail 6 down", "node 12 nic 6 in"});
  CHECK(across.alone == 100_Gbps);
  CHECK(links.route(device_at(5, 5), device_at(12, 5)).alone == 25_GBps);
}

TEST_CASE("inside a ToR set its uplinks are not used", "[links]") {
  const ClusterLinks links(three_tiers(16, 2, 1), {});
  CHECK(links.route(device_at(0, 0), device_at(3, 0)).links.size() == 2);
}

TEST_CASE("oversubscription of several tiers multiplies", "[links]") {
  const ClusterLinks links(three_tiers(16, 2, 4), {});
  const Route route = links.route(device_at(0, 0), device_at(15, 0));
  CHECK(names_of_route(links, route) == Names{"node 0 nic 0 out", "tor 0 rail 0 up", "tor 3 rail 0 down",
                                              "aggregation 0 rail 0 up", "aggregation 1 rail 0 down",
                                              "node 15 nic 0 in"});
  // A ToR set sends 4 x 25 / 2 = 50 GB/s a rail; two of them 100, of which a quarter passes.
  CHECK(links.rate(link_at(route, 3)) == 25_GBps);
}

TEST_CASE("an uplink narrower than a NIC limits even a flow alone", "[links]") {
  const ClusterLinks links(three_tiers(8, 8, 1), {});
  CHECK(links.route(device_at(0, 0), device_at(4, 0)).alone == Bandwidth::bytes_per_second(12'500'000'000));
}

TEST_CASE("oversubscription does not matter while everything is below one unit", "[links]") {
  const ClusterLinks links(three_tiers(4, 2, 2), {});
  CHECK(links.count() == ClusterLinks(rail_cluster(4), {}).count());
}

TEST_CASE("the list of links holds every link once, in the order of the ids", "[links]") {
  const ClusterLinks links(three_tiers(8, 2, 1), {});
  const auto all = links.list();
  REQUIRE(all.size() == links.count());
  CHECK(all.front().name == "node 0 gpu 0 nvlink out");
  CHECK(all.back().name == "tor 1 rail 7 down");
  for (std::size_t k = 0; k < all.size(); ++k) CHECK(all[k].id == LinkId(k));
}

TEST_CASE("one node has no NICs to pass, one device a node no NVLink", "[links]") {
  CHECK(ClusterLinks(rail_cluster(1), {}).count() == 2 * 8);
  ClusterSpec spec = rail_cluster(4);
  spec.devices = 4;
  spec.devices_per_node = 1;
  spec.nics_per_node = 1;
  const ClusterLinks links(spec, {});
  CHECK(links.count() == 2 * 4);
  CHECK(links.name(link_at(links.route(DeviceId(0), DeviceId(3)), 1)) == "node 3 nic 0 in");
}

TEST_CASE("a route to itself or out of the cluster is a bug", "[links]") {
  const ClusterLinks links(rail_cluster(2), {});
  CHECK_THROWS_AS(links.route(DeviceId(3), DeviceId(3)), CheckFailure);
  CHECK_THROWS_AS(links.route(DeviceId(3), DeviceId(16)), CheckFailure);
}

TEST_CASE("rates beyond 64 bits are held at the highest one", "[links]") {
  ClusterSpec spec = three_tiers(2 * 1024 * 1024, 1.5, 1);
  spec.nic = Bandwidth::bytes_per_second(1'000'000'000'000'000);
  spec.tiers[1].fan_in = 128 * 1024;
  spec.tiers[1].oversubscription = 1.5;
  const ClusterLinks links(spec, {});
  CHECK(links.rate(LinkId(links.count() - 1)) > spec.nic);
}
