#include "sim/network/collective_plan.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/network/impl/algorithms.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;
using Kind = CollectiveKind;
using Algorithm = CollectiveAlgorithm;

namespace {

constexpr double nic = 25e9;

struct Way {
  Kind kind;
  Algorithm algorithm;
};

/// Everything that a group of this shape can do; `own_nics`: each device has one.
std::vector<Way> ways_of(std::int64_t nodes, std::int64_t in_node, bool own_nics = true) {
  std::vector<Way> ways{{Kind::all_to_all, Algorithm::direct},
                        {Kind::send_recv, Algorithm::direct},
                        {Kind::broadcast, Algorithm::ring},
                        {Kind::all_reduce, Algorithm::tree},
                        {Kind::all_reduce, Algorithm::ring}};
  const bool spans = in_node > 0 && nodes > 1;
  if (spans) ways.push_back({Kind::all_reduce, Algorithm::collnet_chain});
  if (spans) ways.push_back({Kind::all_reduce, Algorithm::collnet_direct});
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
    ways.push_back({kind, Algorithm::ring});
    if (spans && own_nics) ways.push_back({kind, Algorithm::collnet_direct});
    if (in_node == 1) ways.push_back({kind, Algorithm::pat});
    if (nodes == 1) ways.push_back({kind, Algorithm::nvls});
  }
  if (in_node > 1) ways.push_back({Kind::all_reduce, Algorithm::nvls});
  if (in_node > 1 && nodes > 1) ways.push_back({Kind::all_reduce, Algorithm::nvls_tree});
  return ways;
}

/// The first `in_node` devices of the nodes `first` to `first` + `nodes` - 1.
std::vector<DeviceId> blocks(std::size_t first, std::size_t nodes, std::size_t in_node) {
  std::vector<DeviceId> devices;
  for (std::size_t node = first; node < first + nodes; ++node) {
    for (std::size_t local = 0; local < in_node; ++local) devices.push_back(device_at(node, local));
  }
  return devices;
}

/// Bytes that enter (or leave) devices and NICs, for a byte of the collective's size.
double total(const ClusterLinks& links, const CollectivePlan& plan, const std::string& direction) {
  const std::vector<double> bytes = link_bytes(plan, links.count());
  double sum = 0;
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    const std::string name = links.name(LinkId(link));
    if (name.starts_with("node") && name.ends_with(direction)) sum += bytes[link];
  }
  return sum;
}

double bytes_on(const ClusterLinks& links, const CollectivePlan& plan, const std::string& name) {
  const std::vector<double> bytes = link_bytes(plan, links.count());
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    if (links.name(LinkId(link)) == name) return bytes[link];
  }
  FAIL("there is no link " << name);
  return 0;
}

FairShare network_of(const ClusterLinks& links) {
  std::vector<double> rates;
  for (const LinkInfo& link : links.list()) rates.push_back(static_cast<double>(link.rate.bytes_per_second()));
  return FairShare(std::move(rates));
}

/// Seconds that the parts take when each goes on as the links let it.
double simulated(const ClusterLinks& links, const CollectivePlan& plan, double bytes) {
  FairShare network = network_of(links);
  const std::vector<double> ends = end_times(network, transfers_of(plan, bytes));
  return *std::max_element(ends.begin(), ends.end());
}

ClusterSpec random_cluster(RandomStream& random) {
  const auto nodes = static_cast<std::int64_t>(1 + random.below(24));
  const auto oversubscription = [&] { return random.below(2) == 0 ? 1.0 : 1 + 4 * random.uniform(); };
  ClusterSpec spec =
      random.below(2) == 0 ? rail_cluster(nodes) : three_tiers(nodes, oversubscription(), oversubscription());
  if (random.below(3) == 0) spec.nics_per_node = std::int64_t{1} << random.below(4);
  if (random.below(3) == 0) spec.routing = {.policy = Routing::Policy::ecmp, .seed = random.below(100)};
  if (random.below(3) == 0) {
    spec.degraded.push_back({.kind = DegradedLink::Kind::nvlink,
                             .unit = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(nodes))),
                             .index = static_cast<std::int64_t>(random.below(8)),
                             .factor = 0.1 + 0.9 * random.uniform()});
  }
  return spec;
}

std::vector<DeviceId> random_devices(const ClusterSpec& spec, RandomStream& random) {
  std::vector<DeviceId> devices = consecutive_devices(0, spec.devices);
  for (std::size_t i = devices.size() - 1; i > 0; --i) std::swap(devices[i], devices[random.below(i + 1)]);
  devices.resize(2 + random.below(devices.size() - 1));
  return devices;
}

}  // namespace

TEST_CASE("a ring in a node moves 2 (n-1)/n of the data over every link for an all-reduce, half that for the halves",
          "[plan]") {
  const ClusterLinks links(rail_cluster(1), {});
  for (const std::int64_t n : {2, 3, 8}) {
    const auto devices = consecutive_devices(0, n);
    const double share = static_cast<double>(n - 1) / static_cast<double>(n);
    const auto on = [&](Kind kind) {
      return bytes_on(links, plan_collective(links, kind, Algorithm::ring, devices), "node 0 gpu 1 nvlink out");
    };
    CHECK(on(Kind::all_reduce) == Approx(2 * share));
    CHECK(on(Kind::all_gather) == Approx(share));
    CHECK(on(Kind::reduce_scatter) == Approx(share));
  }
}

TEST_CASE("rings over nodes: one a NIC, in by it and out by it, seven of eight over each NVLink", "[plan]") {
  const ClusterLinks links(rail_cluster(4), {});
  const CollectivePlan plan =
      plan_collective(links, Kind::all_reduce, Algorithm::ring, consecutive_devices(0, 32), PlanGrain::parts);
  CHECK(plan.parts.size() == 8);
  const double hop = 2 * 31.0 / 32 / 8;
  CHECK(bytes_on(links, plan, "node 2 nic 5 out") == Approx(hop));
  CHECK(bytes_on(links, plan, "node 2 nic 5 in") == Approx(hop));
  CHECK(bytes_on(links, plan, "node 2 gpu 5 nvlink out") == Approx(7 * hop));
  CHECK(seconds_a_byte(plan, links) == Approx(hop / nic));  // 8 NICs of 25 GB/s: less than 7/8 of what NVLink does
}

TEST_CASE("a broadcast leaves out the hop into the root and passes all data over every other", "[plan]") {
  const ClusterLinks links(rail_cluster(2), {});
  const CollectivePlan inside = plan_collective(links, Kind::broadcast, Algorithm::ring, consecutive_devices(0, 4));
  CHECK(bytes_on(links, inside, "node 0 gpu 0 nvlink in") == 0);
  CHECK(bytes_on(links, inside, "node 0 gpu 3 nvlink out") == 0);
  CHECK(bytes_on(links, inside, "node 0 gpu 3 nvlink in") == 1);
  const CollectivePlan over = plan_collective(links, Kind::broadcast, Algorithm::ring, consecutive_devices(0, 16));
  CHECK(bytes_on(links, over, "node 0 gpu 0 nvlink in") == 0);
  CHECK(bytes_on(links, over, "node 0 nic 0 in") == 0);  // the ring of the root's NIC
  CHECK(total(links, over, " in") == Approx(15));        // everybody else gets everything once
}

TEST_CASE("bytes are conserved: what the definition of a collective moves, no more and no less", "[plan]") {
  const std::int64_t nodes = GENERATE(1, 2, 3, 5);
  const std::int64_t in_node = GENERATE(1, 2, 8);
  if (nodes * in_node == 1) return;
  const ClusterLinks links(rail_cluster(6), {});
  const auto n = static_cast<double>(nodes * in_node);
  const auto g = static_cast<double>(in_node);
  const auto devices = blocks(1, static_cast<std::size_t>(nodes), static_cast<std::size_t>(in_node));
  for (const Way& way : ways_of(nodes, in_node)) {
    CAPTURE(nodes, in_node, collective_name(way.kind), algorithm_name(way.algorithm));
    const CollectivePlan plan = plan_collective(links, way.kind, way.algorithm, devices);
    const double in = total(links, plan, " in");
    const bool in_switch = way.algorithm == Algorithm::nvls || way.algorithm == Algorithm::nvls_tree;
    const bool by_collnet = way.algorithm == Algorithm::collnet_chain || way.algorithm == Algorithm::collnet_direct;
    const double out = total(links, plan, " out");
    if (by_collnet && way.kind == Kind::all_reduce) {
      // All data of all but one to the NICs and back; over the NICs all data once.
      CHECK(in == Approx(static_cast<double>(nodes) * (2 * (g - 1) + 1)));
      CHECK(out == Approx(in));
      continue;
    }
    if (by_collnet) {
      // What a NIC sends once comes in at every other; what leaves every NIC comes in as one sum.
      const double once = static_cast<double>(nodes) * (g - 1) + 1;
      CHECK(in == Approx(way.kind == Kind::all_gather ? n - 1 : once));
      CHECK(out == Approx(way.kind == Kind::all_gather ? once : n - 1));
      continue;
    }
    // Of what goes out all comes in, but where a switch makes one of many or many of one.
    if (!in_switch || way.kind == Kind::all_reduce) CHECK(total(links, plan, " out") == Approx(in));
    if (in_switch && way.kind == Kind::all_reduce) {
      // All data and its own sum over every NVLink; over the NICs all data once, or up and down two trees.
      const double over_nics = nodes == 1                         ? 0
                               : way.algorithm == Algorithm::nvls ? static_cast<double>(nodes)
                                                                  : 2 * static_cast<double>(nodes - 1);
      CHECK(in == Approx(g + 1 + (static_cast<double>(nodes) - 1) * (g + 1) + over_nics));
    } else if (in_switch) {
      CHECK(in == Approx(way.kind == Kind::all_gather ? n : 1));
      CHECK(total(links, plan, " out") == Approx(way.kind == Kind::all_gather ? 1 : n));
    } else if (way.kind == Kind::all_reduce) {
      CHECK(in == Approx(2 * (n - 1)));  // n-1 of n parts twice to everybody, or n-1 edges of a tree twice
    } else if (way.kind == Kind::all_gather || way.kind == Kind::reduce_scatter || way.kind == Kind::broadcast) {
      CHECK(in == Approx(n - 1));
    } else if (way.kind == Kind::send_recv) {
      CHECK(in == Approx(n));
    } else {
      // (n-1) parts each; those for another place of another node by NVLink first.
      const double staged = n * (g - 1) * (static_cast<double>(nodes) - 1) / n;
      CHECK(in == Approx(n * (n - 1) / n + staged));
    }
  }
}

TEST_CASE("aggregated and split, a collective takes the same time when nothing else runs", "[plan]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, "whole-or-parts");
    const ClusterSpec spec = random_cluster(random);
    const ClusterLinks links(spec, {});
    const bool is_whole = random.below(2) == 0;
    const auto devices = is_whole ? consecutive_devices(0, spec.devices) : random_devices(spec, random);
    const std::int64_t in_node = is_whole ? spec.devices_per_node : 0;
    const bool own_nics = spec.nics_per_node == spec.devices_per_node;
    for (const Way& way : ways_of(is_whole ? spec.nodes() : 2, in_node, own_nics)) {
      if (!is_whole && way.algorithm == Algorithm::nvls) continue;  // alone in its node somebody has no NVSwitch
      INFO("replay: seed " << seed << ", " << collective_name(way.kind) << " " << algorithm_name(way.algorithm));
      const CollectivePlan whole = plan_collective(links, way.kind, way.algorithm, devices);
      const CollectivePlan parts = plan_collective(links, way.kind, way.algorithm, devices, PlanGrain::parts);
      REQUIRE(whole.parts.size() == 1);
      REQUIRE(whole.latency == parts.latency);
      const std::vector<double> of_whole = link_bytes(whole, links.count());
      const std::vector<double> of_parts = link_bytes(parts, links.count());
      for (std::size_t link = 0; link < links.count(); ++link) {
        REQUIRE(of_parts[link] == Approx(of_whole[link]));
      }
      const double alone = 1e9 * seconds_a_byte(whole, links);
      CHECK(1e9 * seconds_a_byte(parts, links) == Approx(alone));
      CHECK(simulated(links, whole, 1e9) == Approx(alone));
      CHECK(simulated(links, parts, 1e9) == Approx(alone));
    }
  }
}

TEST_CASE("no collective beats its bytes over the bisection", "[plan]") {
  const std::size_t nodes = 16;
  for (const double oversubscription : {1.0, 2.0, 8.0}) {
    const ClusterLinks links(three_tiers(nodes, oversubscription, 1), {});
    const auto devices = consecutive_devices(0, 8 * nodes);
    // Half of the nodes, two aggregation units of two ToR sets each: their uplinks towards the other half.
    const double across = 64 * nic / oversubscription;
    for (const Way& way : ways_of(nodes, 8)) {
      CAPTURE(oversubscription, collective_name(way.kind), algorithm_name(way.algorithm));
      if (way.kind == Kind::send_recv) continue;  // only neighbours
      // What one half needs of the other: everything's half of an all-gather, the sums of an all-reduce, 64 x 64 of
      // 128 parts of an all-to-all of everybody.
      const double least = way.kind == Kind::all_to_all                                  ? 64.0 * 64 / 128
                           : way.kind == Kind::all_reduce || way.kind == Kind::broadcast ? 1
                                                                                         : 0.5;
      const double seconds = seconds_a_byte(plan_collective(links, way.kind, way.algorithm, devices), links);
      CHECK(seconds >= least / across);
      if (way.kind == Kind::all_to_all && oversubscription > 2) {
        // The uplinks of a ToR set hold it back: 32 devices to 96 others.
        CHECK(seconds == Approx(32.0 * 96 / 128 / (32 * nic / oversubscription)));
      }
    }
  }
}

TEST_CASE("the two trees: all nodes hang together, at most two below each, and hardly anybody works in both",
          "[plan]") {
  for (const std::size_t nodes : {2U, 3U, 4U, 7U, 8U, 12U, 31U, 64U, 1000U}) {
    CAPTURE(nodes);
    std::vector<std::vector<std::size_t>> children(2, std::vector<std::size_t>(nodes));
    for (const bool second : {false, true}) {
      std::size_t roots = 0;
      for (std::size_t node = 0; node < nodes; ++node) {
        const std::size_t parent = tree_parent(node, nodes, second);
        if (parent == node) ++roots;
        if (parent != node) ++children[second ? 1 : 0][parent];
        std::size_t at = node;
        std::size_t steps = 0;
        for (; tree_parent(at, nodes, second) != at; at = tree_parent(at, nodes, second)) REQUIRE(++steps <= 10);
      }
      CHECK(roots == 1);
    }
    std::size_t edges_of_busiest = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      CHECK(std::max(children[0][node], children[1][node]) <= 2);
      edges_of_busiest = std::max(edges_of_busiest, children[0][node] + children[1][node] + 2);
    }
    CHECK(edges_of_busiest <= 5);  // 4 of an inner node of one and leaf of the other; a root may be one more
  }
}

TEST_CASE("the trees of a NIC carry twice the data of it, whatever the number of nodes", "[plan]") {
  const ClusterLinks links(rail_cluster(64), {});
  const CollectivePlan plan = plan_collective(links, Kind::all_reduce, Algorithm::tree, consecutive_devices(0, 512));
  CHECK(seconds_a_byte(plan, links) == Approx(2.0 / 8 / nic));
  // Chains of 8, and six levels up and down.
  CHECK(plan.latency == 2 * 7 * 1_us + 2 * 6 * 2_us);
}

TEST_CASE("an NVSwitch adds up: all data and the own part of the sum cross each NVLink once", "[plan]") {
  const ClusterLinks links(rail_cluster(1), {});
  const auto devices = consecutive_devices(0, 8);
  const auto on = [&](Kind kind, const std::string& direction) {
    return bytes_on(links, plan_collective(links, kind, Algorithm::nvls, devices), "node 0 gpu 3 nvlink " + direction);
  };
  CHECK(on(Kind::all_reduce, "out") == Approx(9.0 / 8));
  CHECK(on(Kind::all_reduce, "in") == Approx(9.0 / 8));
  CHECK(on(Kind::all_gather, "out") == Approx(1.0 / 8));
  CHECK(on(Kind::reduce_scatter, "in") == Approx(1.0 / 8));
}

TEST_CASE("switches between nodes add up: every NIC carries its part once, and so does every uplink", "[plan]") {
  const ClusterLinks links(three_tiers(16, 4, 1), {});
  const CollectivePlan plan = plan_collective(links, Kind::all_reduce, Algorithm::nvls, consecutive_devices(0, 128));
  for (const char* name :
       {"node 0 nic 3 in", "node 0 nic 3 out", "node 9 nic 3 in", "tor 2 rail 3 up", "tor 2 rail 3 down"}) {
    CHECK(bytes_on(links, plan, name) == Approx(1.0 / 8));
  }
}

TEST_CASE("CollNet: of an all-reduce every NIC carries its part once, and every NVLink all data but the own, twice",
          "[plan]") {
  const ClusterLinks links(three_tiers(16, 4, 1), {});
  const auto devices = consecutive_devices(0, 128);
  const CollectivePlan direct = plan_collective(links, Kind::all_reduce, Algorithm::collnet_direct, devices);
  const CollectivePlan chain = plan_collective(links, Kind::all_reduce, Algorithm::collnet_chain, devices);
  for (const CollectivePlan& plan : {direct, chain}) {
    for (const char* name : {"node 0 nic 3 in", "node 9 nic 3 out", "tor 2 rail 3 up", "tor 2 rail 3 down"}) {
      CHECK(bytes_on(links, plan, name) == Approx(1.0 / 8));
    }
    CHECK(bytes_on(links, plan, "node 4 gpu 5 nvlink out") == Approx(2 * 7.0 / 8));
  }
  CHECK(chain.latency == 2 * 7 * chain.hop_inside + chain.hop_between);
  CHECK(direct.latency == 2 * direct.hop_inside + direct.hop_between);
}

TEST_CASE("CollNet: a part of an all-gather crosses each uplink once, and that of a reduce-scatter each downlink",
          "[plan]") {
  // 16 nodes under 4 ToR sets: 4 parts of a rail go up from each, and the 12 others come down.
  const ClusterLinks links(three_tiers(16, 2, 1), {});
  const auto devices = consecutive_devices(0, 128);
  const auto on = [&](Kind kind, const std::string& name) {
    return 128 * bytes_on(links, plan_collective(links, kind, Algorithm::collnet_direct, devices), name);
  };
  for (const std::string tor : {"tor 0 rail 3", "tor 2 rail 3"}) {
    CHECK(on(Kind::all_gather, tor + " up") == Approx(4));
    CHECK(on(Kind::all_gather, tor + " down") == Approx(12));
    CHECK(on(Kind::reduce_scatter, tor + " up") == Approx(12));
    CHECK(on(Kind::reduce_scatter, tor + " down") == Approx(4));
  }
  for (const std::string node : {"node 0 nic 3", "node 7 nic 3"}) {
    CHECK(on(Kind::all_gather, node + " out") == Approx(1));
    CHECK(on(Kind::all_gather, node + " in") == Approx(15));
  }
}

TEST_CASE("CollNet: NCCL's figures, and none without switches that add up", "[plan][nccl]") {
  constexpr double nvlink = 240e9;
  NcclGroup a100{.ranks = 32,
                 .nodes = 4,
                 .nvlink_bytes_per_s = nvlink,
                 .network_bytes_per_s = nic,
                 .compute_capability = 80,
                 .in_network_reduction = true,
                 .channels = 8};
  const auto way = [](const NcclGroup& group, Kind kind, Algorithm algorithm) -> std::optional<CollectiveTime> {
    for (const CollectiveTime& one : nccl_ways(group, kind, 1 << 30)) {
      if (one.algorithm == algorithm) return one;
    }
    return std::nullopt;
  };
  // NVLink, of which everything passes twice, is slower than twice what 8 NICs of 25 GB/s carry.
  CHECK(way(a100, Kind::all_reduce, Algorithm::collnet_chain)->bytes_per_s == Approx(nvlink / 2));
  CHECK(way(a100, Kind::all_reduce, Algorithm::collnet_chain)->latency_s == Approx((2 * 7 * 2.8 + 30) * 1e-6));
  CHECK(way(a100, Kind::all_reduce, Algorithm::collnet_direct)->bytes_per_s == Approx(nvlink / 2));
  CHECK(way(a100, Kind::all_reduce, Algorithm::collnet_direct)->latency_s == Approx((2 * (3.7 + 7 * 0.4) + 31) * 1e-6));
  CHECK(way(a100, Kind::all_gather, Algorithm::collnet_direct)->bytes_per_s == Approx(0.9 * 8 * nic));
  NcclGroup shared = a100;  // two ranks a NIC
  shared.channels = 4;
  CHECK(way(shared, Kind::all_reduce, Algorithm::collnet_direct)->bytes_per_s == Approx(nvlink / 2 / 1.5));
  CHECK_FALSE(way(shared, Kind::all_gather, Algorithm::collnet_direct));
  NcclGroup lone = a100;
  lone.ranks = 4;
  CHECK(way(lone, Kind::all_reduce, Algorithm::collnet_chain)->bytes_per_s == Approx(nic));
  CHECK(way(lone, Kind::all_reduce, Algorithm::collnet_chain)->latency_s == Approx(14e-6));
  NcclGroup over_pcie = a100;
  over_pcie.has_nvlink = false;
  CHECK(way(over_pcie, Kind::all_reduce, Algorithm::collnet_chain));
  CHECK_FALSE(way(over_pcie, Kind::all_reduce, Algorithm::collnet_direct));
  NcclGroup without = a100;
  without.in_network_reduction = false;
  NcclGroup one_node = a100;
  one_node.nodes = 1;
  one_node.ranks = 8;
  for (const NcclGroup& group : {without, one_node}) {
    CHECK_FALSE(way(group, Kind::all_reduce, Algorithm::collnet_chain));
    CHECK_FALSE(way(group, Kind::all_gather, Algorithm::collnet_direct));
  }
}

TEST_CASE("PAT sends far what is little", "[plan]") {
  // 16 nodes under 4 ToR sets: of 15 parts, 8 go to the next node, 4 to the one after, 2 by four and 1 by eight.
  const ClusterLinks links(three_tiers(16, 2, 1), {});
  const auto devices = blocks(0, 16, 1);
  const CollectivePlan pat = plan_collective(links, Kind::all_gather, Algorithm::pat, devices);
  CHECK(bytes_on(links, pat, "node 5 nic 0 out") == Approx(15.0 / 16));
  // Out of a ToR set: the last of four to the next (8), the last two by two (4 each), all four by four and eight.
  CHECK(bytes_on(links, pat, "tor 1 rail 0 up") == Approx((8 + 2 * 4 + 4 * 2 + 4 * 1) / 16.0));
  CHECK(pat.latency == 4 * 6_us);
}

TEST_CASE("beside other traffic a ring gets its fair share of the slowest hop, and leaves what it cannot use",
          "[plan]") {
  const ClusterLinks links(rail_cluster(4), {});
  const CollectivePlan plan = plan_collective(links, Kind::all_gather, Algorithm::ring, blocks(0, 4, 1));
  FairShare network = network_of(links);
  std::vector<FairShare::Link> out_of_node_1;
  const Route message = links.route(device_at(1, 0), device_at(3, 0));
  for (const auto& [link, share] : message.binding_links()) {
    out_of_node_1.push_back(static_cast<FairShare::Link>(link.index()));
  }
  std::vector<Transfer> transfers = transfers_of(plan, 1e9);
  transfers.push_back({out_of_node_1, std::numeric_limits<double>::infinity()});
  // Both cross NIC 0 of node 1 and of node 3: half each. Every hop moves 3/4 of the data.
  CHECK(end_times(network, transfers)[0] == Approx(2 * 0.75e9 / nic));
}

TEST_CASE("plans that start together share the links, and take turns in no part of them", "[plan]") {
  const ClusterLinks links(rail_cluster(4), {});
  const CollectivePlan one = plan_collective(links, Kind::all_gather, Algorithm::ring, consecutive_devices(0, 32));
  const CollectivePlan reduction =
      plan_collective(links, Kind::all_reduce, Algorithm::ring, consecutive_devices(0, 32));
  const CollectivePlan both = together(std::vector{one, reduction});
  CHECK(seconds_a_byte(both, links) == Approx(seconds_a_byte(one, links) + seconds_a_byte(reduction, links)));
}

TEST_CASE("a narrow NIC slows the collectives that cross it, in proportion, and no others", "[plan]") {
  ClusterSpec spec = rail_cluster(8);
  const ClusterLinks before(spec, {});
  spec.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 3, .index = 5, .factor = 0.5}};
  const ClusterLinks after(spec, {});
  const auto slowdown = [&](std::size_t first, std::size_t nodes) {
    const auto devices = blocks(first, nodes, 8);
    const auto plan = plan_collective(after, Kind::all_gather, Algorithm::ring, devices);
    return seconds_a_byte(plan, after) / seconds_a_byte(plan, before);
  };
  CHECK(slowdown(0, 8) == Approx(2));
  CHECK(slowdown(4, 4) == Approx(1));
  CHECK(slowdown(0, 3) == Approx(1));
}

TEST_CASE("what an algorithm does not do is a bug to ask for", "[plan]") {
  const ClusterLinks links(rail_cluster(2), {});
  const auto devices = consecutive_devices(0, 16);
  CHECK_THROWS_AS(plan_collective(links, Kind::all_gather, Algorithm::tree, devices), CheckFailure);
  CHECK_THROWS_AS(plan_collective(links, Kind::all_gather, Algorithm::nvls, devices), CheckFailure);
  CHECK_THROWS_AS(plan_collective(links, Kind::all_gather, Algorithm::pat, devices), CheckFailure);
  CHECK_THROWS_AS(plan_collective(links, Kind::send_recv, Algorithm::ring, devices), CheckFailure);
  CHECK_THROWS_AS(plan_collective(links, Kind::all_reduce, Algorithm::ring, std::vector{DeviceId(3), DeviceId(3)}),
                  CheckFailure);
}
