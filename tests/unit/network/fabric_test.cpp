#include "sim/network/fabric.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/network/cluster_links.h"
#include "sim/network/traffic.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

using Names = std::vector<std::string>;

Names names_on(const ClusterLinks& links, DeviceId from, DeviceId to) {
  Names names;
  const Route route = links.route(from, to);
  for (const auto& [link, share] : route.binding_links()) names.push_back(links.name(link));
  return names;
}

/// One device and one NIC a node, no latencies but those of the fabric.
ClusterSpec single_devices(std::int64_t nodes) {
  ClusterSpec spec = rail_cluster(nodes);
  spec.devices = nodes;
  spec.devices_per_node = 1;
  spec.nics_per_node = 1;
  return spec;
}

DeviceId node(std::size_t which) {
  return DeviceId(which);
}

/// Links that a permutation of all nodes uses, with how many messages.
std::map<LinkId, int> loads_of_shift(const ClusterLinks& links, std::size_t nodes, std::size_t by) {
  std::map<LinkId, int> loads;
  for (std::size_t n = 0; n < nodes; ++n) {
    const Route route = links.route(node(n), node((n + by) % nodes));
    for (const auto& [link, share] : route.binding_links()) ++loads[link];
  }
  return loads;
}

}  // namespace

TEST_CASE("nodes without NVLink send by their PCIe links, and past the switch that two gpus share", "[fabric]") {
  ClusterSpec spec = rail_cluster(1);
  spec.nvlink = {};
  spec.pcie = 32_GBps;
  spec.devices_per_pcie_uplink = 2;
  const ClusterLinks links(spec, {});
  CHECK(names_on(links, node(2), node(3)) == Names{"node 0 gpu 2 pcie out", "node 0 gpu 3 pcie in"});
  CHECK(names_on(links, node(2), node(7)) ==
        Names{"node 0 gpu 2 pcie out", "node 0 pcie switch 1 out", "node 0 pcie switch 3 in", "node 0 gpu 7 pcie in"});
  CHECK(links.route(node(2), node(7)).alone == 32_GBps);
  CHECK_FALSE(links.has_one_owner(link_at(links.route(node(2), node(7)), 1)));
  CHECK(links.count() == 2 * 8 + 2 * 4);
}

TEST_CASE("with ECMP a unit has as many uplinks as NICs below it, fewer when it is oversubscribed", "[fabric]") {
  ClusterSpec spec = three_tiers(16, 2, 1);
  spec.routing.policy = Routing::Policy::ecmp;
  const ClusterLinks links(spec, {});
  std::set<std::string> uplinks;
  for (std::size_t to = 4; to < 8; ++to) {
    for (std::size_t local = 0; local < 8; ++local)
      uplinks.insert(names_on(links, device_at(0, 0), device_at(to, local))[1]);
  }
  // 4 nodes x 25 GB/s, oversubscribed twofold: 2 uplinks of 25 GB/s.
  CHECK(uplinks == std::set<std::string>{"tor 0 rail 0 up 0", "tor 0 rail 0 up 1"});
  CHECK(links.rate(link_at(links.route(device_at(0, 0), device_at(5, 0)), 1)) == 25_GBps);
}

TEST_CASE("the uplink that a flow takes fixes the switches of its way down", "[fabric]") {
  ClusterSpec spec = three_tiers(16, 1, 1);  // 4 uplinks a ToR, 8 an aggregation unit: 2 from each of its switches
  spec.routing = {Routing::Policy::ecmp, 3};
  const ClusterLinks links(spec, {});
  for (std::size_t from = 0; from < 8; ++from) {
    const Names way = names_on(links, device_at(from, 1), device_at(from + 8, 1));
    REQUIRE(way.size() == 6);
    const auto number = [](const std::string& name) { return std::stoul(name.substr(name.rfind(' ') + 1)); };
    CHECK(number(way[1]) == number(way[2]));  // up to and down from the same aggregation switch
    CHECK(number(way[3]) == number(way[4]));  // the same core
    CHECK(number(way[3]) / 2 == number(way[1]));
  }
}

TEST_CASE("an ECMP hash spreads flows and lets some meet; another seed spreads them otherwise", "[fabric]") {
  constexpr std::size_t nodes = 64;
  const auto most_on_an_uplink = [](std::uint64_t seed) {
    ClusterSpec spec = single_devices(nodes);
    spec.tiers = {{.name = "leaf", .fan_in = 32}, {.name = "spine", .fan_in = 2}};
    spec.routing = {Routing::Policy::ecmp, seed};
    const ClusterLinks links(spec, {});
    const auto loads = loads_of_shift(links, nodes, 32);
    return std::max_element(loads.begin(), loads.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
  };
  // 32 balls into 32 bins: some bin has three or more almost surely, none has eight.
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CHECK(most_on_an_uplink(seed) >= 2);
    CHECK(most_on_an_uplink(seed) <= 8);
  }
  CHECK(most_on_an_uplink(1) == most_on_an_uplink(1));
}

TEST_CASE("with adaptive routing no flow of a permutation meets another one on a full fabric", "[fabric]") {
  ClusterSpec spec = single_devices(64);
  spec.tiers = {{.name = "leaf", .fan_in = 32}, {.name = "spine", .fan_in = 2}};
  const ClusterLinks links(spec, {});
  for (const auto& [link, load] : loads_of_shift(links, 64, 32)) CHECK(load == 1);
}

TEST_CASE("a torus goes dimension by dimension, the shorter way round", "[fabric]") {
  ClusterSpec spec = single_devices(5 * 4);
  spec.fabric = TorusSpec{.shape = {5, 4}, .bandwidth = 10_GBps, .latency = 100_ns};
  const ClusterLinks links(spec, {});
  // Node 0 is (0, 0), node 13 is (3, 2): two down round the end of the first row, then two up.
  const Names expected{"node 0 nic 0 out",
                       "torus node 0 rail 0 dimension 0 down",
                       "torus node 4 rail 0 dimension 0 down",
                       "torus node 3 rail 0 dimension 1 up",
                       "torus node 8 rail 0 dimension 1 up",
                       "node 13 nic 0 in"};
  CHECK(names_on(links, node(0), node(13)) == expected);
  CHECK(links.route(node(0), node(13)).latency == 400_ns);
  CHECK(links.route(node(0), node(13)).alone == 10_GBps);
}

TEST_CASE("all neighbours of a torus talk at once at full rate, and a shift by half of it shares links", "[fabric]") {
  ClusterSpec spec = single_devices(8 * 8 * 8);
  spec.fabric = TorusSpec{.shape = {8, 8, 8}, .bandwidth = 25_GBps, .latency = {}};
  const ClusterLinks links(spec, {});
  for (const auto& [link, load] : loads_of_shift(links, 512, 64)) CHECK(load == 1);  // one hop of the third dimension
  int most = 0;
  for (const auto& [link, load] : loads_of_shift(links, 512, 256)) most = std::max(most, load);
  CHECK(most == 4);  // four hops each: every link up carries its own message and those of the three nodes before it
}

TEST_CASE("a dragonfly takes one spine in a group and one global link between two", "[fabric]") {
  ClusterSpec spec = single_devices(3 * 2 * 2);
  spec.fabric = DragonflySpec{.groups = 3,
                              .leaves = 2,
                              .spines = 2,
                              .nodes_per_leaf = 2,
                              .global_links = 1,
                              .local = 25_GBps,
                              .global = 5_GBps,
                              .latency = 100_ns,
                              .global_latency = 1_us};
  spec.routing.policy = Routing::Policy::ecmp;
  const ClusterLinks links(spec, {});
  CHECK(names_on(links, node(0), node(1)) == Names{"node 0 nic 0 out", "node 1 nic 0 in"});
  CHECK(links.route(node(0), node(1)).latency == 100_ns);
  const Names in_group = names_on(links, node(0), node(2));
  REQUIRE(in_group.size() == 4);
  const std::string spine = in_group[1].substr(std::string("group 0 leaf 0 ").size(), std::string("spine 0").size());
  CHECK(in_group[1] == "group 0 leaf 0 " + spine + " rail 0 up");
  CHECK(in_group[2] == "group 0 leaf 1 " + spine + " rail 0 down");
  CHECK(links.route(node(0), node(2)).latency == 300_ns);
  // From group 0 to group 2: the second of the two other groups, so spine 1; seen from group 2, group 0 is the first.
  const Names between{"node 0 nic 0 out", "group 0 leaf 0 spine 1 rail 0 up", "group 0 to group 2 link 0 rail 0",
                      "group 2 leaf 1 spine 0 rail 0 down", "node 11 nic 0 in"};
  CHECK(names_on(links, node(0), node(11)) == between);
  CHECK(links.route(node(0), node(11)).latency == 400_ns + 1_us);
  CHECK(links.route(node(0), node(11)).alone == 5_GBps);
}

TEST_CASE("every link of a dragonfly has a name of its own", "[fabric]") {
  ClusterSpec spec = single_devices(4 * 3 * 1);
  spec.fabric = DragonflySpec{.groups = 4,
                              .leaves = 3,
                              .spines = 2,
                              .nodes_per_leaf = 1,
                              .global_links = 2,
                              .local = 1_GBps,
                              .global = 1_GBps,
                              .latency = {},
                              .global_latency = {}};
  const ClusterLinks links(spec, {});
  std::set<std::string> names;
  for (const LinkInfo& link : links.list()) names.insert(link.name);
  CHECK(names.size() == links.count());
}

TEST_CASE("a graph's ways are the shortest, over cables that a hash chooses", "[fabric]") {
  ClusterSpec spec = single_devices(4);
  SwitchGraphSpec graph;
  graph.switches = {{"left", 1_us}, {"right", 2_us}, {"detour", 4_us}};
  graph.cables = {{0, 1, 10_GBps, 2}, {0, 2, 100_GBps, 1}, {2, 1, 100_GBps, 1}};
  graph.attached = {0, 0, 1, 1};
  spec.fabric = graph;
  spec.routing.policy = Routing::Policy::ecmp;
  const ClusterLinks links(spec, {});
  CHECK(names_on(links, node(0), node(1)) == Names{"node 0 nic 0 out", "node 1 nic 0 in"});
  CHECK(links.route(node(0), node(1)).latency == 1_us);
  CHECK(links.route(node(0), node(2)).latency == 3_us);
  CHECK(links.route(node(0), node(2)).alone == 10_GBps);
  std::set<std::string> used;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    spec.routing.seed = seed;
    used.insert(names_on(ClusterLinks(spec, {}), node(0), node(2))[1]);
  }
  CHECK(used == std::set<std::string>{"left to right", "left to right 1"});
}

TEST_CASE("parallel cables have numbers of their own, however they were written down", "[fabric]") {
  ClusterSpec spec = single_devices(2);
  SwitchGraphSpec graph;
  graph.switches = {{"left", {}}, {"right", {}}, {"other", {}}};
  graph.cables = {{0, 1, 10_GBps, 2}, {1, 2, 10_GBps, 1}, {1, 0, 20_GBps, 1}};
  graph.attached = {0, 1};
  spec.routing.policy = Routing::Policy::ecmp;
  spec.fabric = graph;
  const ClusterLinks links(spec, {});
  Names names;
  for (const LinkInfo& link : links.list()) names.push_back(link.name);
  names.erase(names.begin(), names.begin() + 4);  // the NICs'
  CHECK(names == Names{"left to right", "right to left", "left to right 1", "right to left 1", "right to other",
                       "other to right", "right to left 2", "left to right 2"});
  CHECK(links.rate(LinkId(links.count() - 1)) == 20_GBps);
}

TEST_CASE("past a cable that is missing messages go another way, and the others keep their numbers", "[fabric]") {
  ClusterSpec spec = single_devices(2);
  SwitchGraphSpec graph;
  graph.switches = {{"left", {}}, {"right", {}}, {"detour", {}}};
  graph.cables = {{0, 1, {}, 1}, {0, 1, 10_GBps, 1}, {0, 2, 20_GBps, 1}, {2, 1, 20_GBps, 1}};
  graph.attached = {0, 1};
  spec.routing.policy = Routing::Policy::ecmp;
  spec.fabric = graph;
  CHECK(names_on(ClusterLinks(spec, {}), node(0), node(1))[1] == "left to right 1");
  graph.cables[1].bandwidth = {};
  spec.fabric = graph;
  CHECK(names_on(ClusterLinks(spec, {}), node(0), node(1)) ==
        Names{"node 0 nic 0 out", "left to detour", "detour to right", "node 1 nic 0 in"});
}

TEST_CASE("a hash spreads flows evenly over a bundle of 65,536 cables", "[fabric]") {
  ClusterSpec spec = single_devices(512);
  SwitchGraphSpec graph;
  graph.switches = {{"left", {}}, {"right", {}}};
  graph.cables = {{0, 1, 1_GBps, 65536}};
  graph.attached.assign(256, 0);
  graph.attached.resize(512, 1);
  spec.routing.policy = Routing::Policy::ecmp;
  spec.fabric = graph;
  const ClusterLinks links(spec, {});
  CHECK(links.count() == 2 * 512 + 2 * 65536);
  std::set<LinkId> used;
  for (std::size_t n = 0; n < 256; ++n) used.insert(link_at(links.route(node(n), node(n + 256)), 1));
  CHECK(used.size() > 250);  // 256 balls in 65,536 bins: one pair meets with a chance of 0.4
}

TEST_CASE("rails that have no way to each other are changed inside the sender's node", "[fabric]") {
  ClusterSpec spec = rail_cluster(2);
  SwitchGraphSpec graph;
  for (std::size_t rail = 0; rail < 8; ++rail) graph.switches.push_back({"rail", {}});
  for (std::size_t nic = 0; nic < 16; ++nic) graph.attached.push_back(nic % 8);
  spec.fabric = graph;
  const ClusterLinks links(spec, {});
  CHECK(names_on(links, device_at(0, 3), device_at(1, 3)) == Names{"node 0 nic 3 out", "node 1 nic 3 in"});
  CHECK(names_on(links, device_at(0, 3), device_at(1, 5)) ==
        Names{"node 0 gpu 3 nvlink out", "node 0 gpu 5 nvlink in", "node 0 nic 5 out", "node 1 nic 5 in"});
}

namespace {

/// Nodes of 8 devices and NICs of 50 GB/s, four on each of `leaves` leaves, each joined to `spines` spines by as many
/// cables as carry all that its NICs send.
ClusterSpec fat_tree(std::size_t leaves, std::size_t spines) {
  ClusterSpec spec = rail_cluster(static_cast<std::int64_t>(4 * leaves));
  spec.tiers.clear();
  spec.nic = 50_GBps;
  SwitchGraphSpec graph;
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) graph.switches.push_back({"leaf" + std::to_string(leaf), 1_us});
  for (std::size_t spine = 0; spine < spines; ++spine) {
    graph.switches.push_back({"spine" + std::to_string(spine), 2_us});
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      graph.cables.push_back({leaf, leaves + spine, 50_GBps, static_cast<std::int64_t>(32 / spines)});
    }
  }
  for (std::size_t nic = 0; nic < 32 * leaves; ++nic) graph.attached.push_back(nic / 32);
  spec.fabric = graph;
  return spec;
}

SwitchGraphSpec& graph_of(ClusterSpec& spec) {
  return std::get<SwitchGraphSpec>(spec.fabric);
}

double bisection_of_a_device(const ClusterSpec& spec) {
  return bisection_rate(ClusterLinks(spec, {})) / static_cast<double>(spec.devices);
}

/// By link, what a message from one device to another puts on it.
std::map<std::string, double> shares_on(const ClusterLinks& links, DeviceId from, DeviceId to) {
  std::map<std::string, double> shares;
  const Route route = links.route(from, to);
  for (const auto& [link, share] : route.binding_links()) shares[links.name(link)] = share;
  return shares;
}

}  // namespace

TEST_CASE("packet by packet a non-blocking fat tree has its full bisection; flow by flow some meet", "[fabric]") {
  ClusterSpec spec = fat_tree(4, 8);
  CHECK(bisection_of_a_device(spec) == Approx(50e9));
  // Nothing but NICs and NVLink can ever be full, as in tiers without oversubscription.
  CHECK(ClusterLinks(spec, {}).count() == 2 * 2 * 16 * 8);
  CHECK(ClusterLinks(spec, {}).route(device_at(0, 0), device_at(15, 0)).latency == 4_us);
  spec.routing = {Routing::Policy::ecmp, 3};
  CHECK(bisection_of_a_device(spec) < 40e9);
}

TEST_CASE("the uplinks of a leaf to all spines are one link, as wide as all of its cables", "[fabric]") {
  ClusterSpec spec = fat_tree(4, 8);
  for (SwitchGraphSpec::Cable& cable : graph_of(spec).cables) cable.count = 2;  // half of what the NICs send
  const ClusterLinks links(spec, {});
  CHECK(names_on(links, device_at(0, 0), device_at(15, 0)) ==
        Names{"node 0 nic 0 out", "leaf0 to spine0 and 15 more cables", "spine0 to leaf3 and 15 more cables",
              "node 15 nic 0 in"});
  CHECK(links.rate(link_at(links.route(device_at(0, 0), device_at(15, 0)), 1)) == 800_GBps);
  CHECK(bisection_of_a_device(spec) == Approx(25e9));
}

TEST_CASE("three levels of switches are as wide as what joins them, with links for what can be full alone",
          "[fabric]") {
  // Two groups of two leaves and two spines each; two cores over them, half as wide.
  ClusterSpec spec = rail_cluster(4);
  spec.tiers.clear();
  spec.nic = 10_GBps;
  SwitchGraphSpec graph;
  for (const char* name : {"l0", "l1", "l2", "l3", "s0", "s1", "s2", "s3", "c0", "c1"}) {
    graph.switches.push_back({name, {}});
  }
  for (std::size_t leaf = 0; leaf < 4; ++leaf) {
    for (std::size_t spine = 0; spine < 2; ++spine) {
      graph.cables.push_back({leaf, 4 + leaf / 2 * 2 + spine, 10_GBps, 4});
    }
  }
  for (std::size_t spine = 4; spine < 8; ++spine) {
    for (std::size_t core = 8; core < 10; ++core) graph.cables.push_back({spine, core, 10_GBps, 2});
  }
  for (std::size_t nic = 0; nic < 32; ++nic) graph.attached.push_back(nic / 8);
  spec.fabric = graph;
  const ClusterLinks links(spec, {});
  // The four spines' cables of a group are one link: 8 cables for 16 NICs.
  CHECK(names_on(links, device_at(0, 0), device_at(3, 0)) ==
        Names{"node 0 nic 0 out", "s0 to c0 and 7 more cables", "c0 to s2 and 7 more cables", "node 3 nic 0 in"});
  CHECK(links.count() == 2 * 2 * 32 + 4);
  CHECK(bisection_of_a_device(spec) == Approx(5e9));
  CHECK(names_on(links, device_at(0, 0), device_at(1, 0)).size() == 2);
}

TEST_CASE("a degraded cable gets less of every message that would cross it, and holds none back alone", "[fabric]") {
  ClusterSpec spec = fat_tree(4, 8);
  // The cables from spine 2 to leaf 3 carry a quarter: leaf 3 keeps 7.25 of 8 parts.
  for (SwitchGraphSpec::Cable& cable : graph_of(spec).cables) {
    if (cable.from == 3 && cable.to == 4 + 2) cable.bandwidth = 100_Gbps;
  }
  const ClusterLinks links(spec, {});
  const auto shares = shares_on(links, device_at(0, 0), device_at(12, 0));
  // By what each carries, all cables into leaf 3 fill up together; those out of leaf 0 do not.
  CHECK(shares.at("spine0 to leaf3 and 31 more cables") == 1);
  CHECK(shares.at("leaf0 to spine2 and 3 more cables") == Approx(0.25 / 7.25));
  // All of leaf 3's 32 NICs receive over 7.25 parts of four cables.
  std::vector<Message> messages;
  for (std::size_t i = 0; i < 32; ++i) messages.push_back({DeviceId(i), DeviceId(96 + i), 50e9});
  for (const double end : arrival_times(links, messages)) CHECK(end == Approx(8 / 7.25).epsilon(1e-3));
}

TEST_CASE("without rails all NICs of a node are on one switch, and share its uplinks", "[fabric]") {
  ClusterSpec spec = three_tiers(16, 2, 1);
  CHECK(names_on(ClusterLinks(spec, {}), device_at(0, 1), device_at(8, 1))[1] == "tor 0 rail 1 up");
  spec.has_rails = false;
  const ClusterLinks links(spec, {});
  CHECK(names_on(links, device_at(0, 1), device_at(8, 1)) ==
        Names{"node 0 nic 1 out", "tor 0 up", "tor 2 down", "node 8 nic 1 in"});
  // Four nodes of eight NICs of 25 GB/s, oversubscribed twofold, have 400 GB/s, all of which one NIC of each may use.
  CHECK(links.rate(link_at(links.route(device_at(0, 1), device_at(8, 1)), 1)) == 400_GBps);
  spec.degraded = {{.kind = DegradedLink::Kind::tier, .tier = 0, .unit = 2, .index = 0, .factor = 0.5}};
  const ClusterLinks degraded(spec, {});
  CHECK(degraded.rate(link_at(degraded.route(device_at(8, 1), device_at(0, 1)), 1)) == 200_GBps);
}

TEST_CASE("a dragonfly spreads messages over all spines and all links between two groups", "[fabric]") {
  ClusterSpec spec = single_devices(2 * 2 * 2);
  spec.fabric = DragonflySpec{.groups = 2,
                              .leaves = 2,
                              .spines = 2,
                              .nodes_per_leaf = 2,
                              .global_links = 4,
                              .local = 25_GBps,
                              .global = 5_GBps,
                              .latency = 100_ns,
                              .global_latency = 1_us};
  const ClusterLinks links(spec, {});
  CHECK(links.route(node(0), node(2)).alone == 25_GBps);
  const auto shares = shares_on(links, node(0), node(7));
  CHECK(shares.at("group 0 leaf 0 spine 1 rail 0 up") == 0.5);
  CHECK(shares.at("group 0 to group 1 link 3 rail 0") == 0.25);
  CHECK(links.route(node(0), node(7)).alone == 20_GBps);
}
