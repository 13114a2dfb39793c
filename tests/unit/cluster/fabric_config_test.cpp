#include <algorithm>

#include "tests/support/catch.h"
#include "tests/unit/cluster/cluster_files.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

// Eight nodes of two GPUs with a NIC each.
const std::string eight_nodes = R"(device: X
gpus: 16
node:
  gpus: 2
  gpu_memory: 1 GB
  host_memory: 1 GB
  nics: {count: 2, bandwidth: 25 GB/s}
  pcie: {bandwidth: 32 GB/s}
)";

}  // namespace

TEST_CASE("gpus without NVLink talk over PCIe", "[cluster]") {
  CHECK_FALSE(cluster_from(eight_nodes + "tiers: {tor: {fan_in: 8}}\n").has_nvlink());
}

TEST_CASE("routing is adaptive unless it says ecmp", "[cluster]") {
  const std::string tiers = eight_nodes + "tiers: {tor: {fan_in: 4, uplinks: 3}, core: {fan_in: 2}}\n";
  CHECK(cluster_from(tiers).routing.policy == Routing::Policy::adaptive);
  CHECK(cluster_from(tiers).tiers[0].uplinks == 3);
  CHECK(cluster_from(tiers + "routing: ecmp\n").routing.policy == Routing::Policy::ecmp);
  const Routing seeded = cluster_from(tiers + "routing: {policy: ecmp, seed: 7}\n").routing;
  CHECK(seeded.policy == Routing::Policy::ecmp);
  CHECK(seeded.seed == 7);
  CHECK_THAT(problems_of(tiers + "routing: ecpm\n"), Contains("known: adaptive, ecmp"));
}

TEST_CASE("a torus holds exactly the cluster's nodes", "[cluster]") {
  const auto torus = [](const std::string& shape) {
    return eight_nodes + "torus: {shape: " + shape + ", bandwidth: 12.5 GB/s, latency: 0.2 us}\n";
  };
  const ClusterSpec spec = cluster_from(torus("[4, 2]"));
  const auto* read = std::get_if<TorusSpec>(&spec.fabric);
  REQUIRE(read != nullptr);
  CHECK(read->shape == std::vector<std::int64_t>{4, 2});
  CHECK(read->bandwidth == 100_Gbps);
  CHECK_THAT(problems_of(torus("[4, 4]")), Contains("the shape holds 16 nodes, the cluster has 8"));
  CHECK_THAT(problems_of(torus("[0, 8]")), Contains("a dimension is 0, it must be from 1 to"));
  CHECK_THAT(problems_of(torus("8")), Contains("the shape must be a list"));
}

TEST_CASE("a ring of nodes that is too long to route over is refused", "[cluster]") {
  CHECK_THAT(problems_of("{device: X, gpus: 64, node: {gpus: 1, gpu_memory: 1 GB, host_memory: 1 GB, nics: {count: 1, "
                         "bandwidth: 1 GB/s}, pcie: {bandwidth: 1 GB/s}}, torus: {shape: [64], bandwidth: 1 GB/s}}"),
             Contains("ways over this torus have up to 32 links, at most 28 are possible"));
}

TEST_CASE("a dragonfly joins at least the cluster's nodes", "[cluster]") {
  const auto dragonfly = [](const std::string& groups) {
    return eight_nodes + "dragonfly: {groups: " + groups +
           ", leaves: 2, spines: 2, nodes_per_leaf: 2, global_links: 2, bandwidth: 25 GB/s, global_latency: 1 us}\n";
  };
  const ClusterSpec spec = cluster_from(dragonfly("2"));
  const auto* read = std::get_if<DragonflySpec>(&spec.fabric);
  REQUIRE(read != nullptr);
  CHECK(read->global_links == 2);
  CHECK(read->global == 25_GBps);  // as the local links, unless it says otherwise
  CHECK(read->global_latency == 1_us);
  CHECK_THAT(problems_of(dragonfly("1")), Contains("the dragonfly joins 4 nodes, the cluster has 8"));
}

TEST_CASE("a graph names its switches, cables and where the nodes hang", "[cluster]") {
  const ClusterSpec spec = cluster_from(eight_nodes + R"(graph:
  switches: {left: {latency: 1 us}, right: {}}
  cables: [{from: left, to: right, bandwidth: 50 GB/s, count: 2}]
  nodes: {0-3: left, 4-7: right, 7 nic 1: left}
)");
  const auto* graph = std::get_if<SwitchGraphSpec>(&spec.fabric);
  REQUIRE(graph != nullptr);
  CHECK(graph->switches[0].latency == 1_us);
  REQUIRE(graph->cables.size() == 1);
  CHECK(graph->cables[0].count == 2);
  CHECK(graph->attached == std::vector<std::size_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0});
}

TEST_CASE("what is wrong with a graph is told at once", "[cluster]") {
  CHECK(problems_of(eight_nodes + R"(graph:
  switches: {left: {}, right: {}}
  cables:
    - {from: left, to: rigth, bandwidth: 50 GB/s}
    - {from: left, to: left, bandwidth: 50 GB/s}
    - {from: left, to: right, bandwidth: 0 GB/s}
  nodes: {0-8: left, some: right, 3 nic 2: left}
)") == R"(cluster.yaml:12:24: error: there is no switch 'rigth'; name it in switches
cluster.yaml:13:7: error: a cable from 'left' to itself
cluster.yaml:14:42: error: 'bandwidth' is 0 GB/s, it must be from 1 MB/s to 1000 TB/s
cluster.yaml:15:11: error: there is no node 8 with a nic 1; the cluster has nodes 0 to 7 with nics 0 to 1
cluster.yaml:15:22: error: 'some' names no nodes; write 3, 0-31, 0-31 nic 2 or 0-31 nic 0-3
cluster.yaml:15:35: error: there is no node 3 with a nic 2; the cluster has nodes 0 to 7 with nics 0 to 1
)");
}

TEST_CASE("nodes of one rail without a way to each other are named; rails may be apart", "[cluster]") {
  const auto graph = [](const std::string& nodes) {
    return eight_nodes +
           "graph:\n  switches: {a: {}, b: {}, c: {}}\n  cables: [{from: a, to: b, bandwidth: 1 GB/s}]\n" +
           "  nodes: " + nodes + "\n";
  };
  CHECK_THAT(problems_of(graph("{0-3: a, 4-7: c}")),
             Contains("nic 0 of node 4 has no way to nic 0 of node 0: no cables lead from 'c' to 'a'"));
  CHECK(problems_of(graph("{0-3 nic 0: a, 4-7 nic 0: b, 0-7 nic 1: c}")).empty());
}

TEST_CASE("a switch of which nothing is stated has no latency", "[cluster]") {
  const ClusterSpec spec = cluster_from(eight_nodes +
                                        "graph:\n  switches: {a: , b: {latency: 1 us}}\n  cables: [{from: a, to: b, "
                                        "bandwidth: 1 GB/s}]\n  nodes: {0-3: a, 4-7: b}\n");
  CHECK(std::get<SwitchGraphSpec>(spec.fabric).switches.at(0).latency == 0_ps);
}

TEST_CASE("a dragonfly has no more links than a machine can hold", "[cluster]") {
  CHECK_THAT(problems_of(eight_nodes + "dragonfly: {groups: 100000, leaves: 1, spines: 1, nodes_per_leaf: 1, "
                                       "global_links: 64, bandwidth: 25 GB/s}\n"),
             Contains("links, at most 1e+08 are possible"));
}

TEST_CASE("nodes joined twice are refused", "[cluster]") {
  CHECK_THAT(problems_of(eight_nodes + "tiers: {tor: {fan_in: 8}}\ntorus: {shape: [8], bandwidth: 1 GB/s}\n"),
             Contains("the nodes are joined by two fabrics"));
}

TEST_CASE("a cable that is slow or missing is named as links.csv names it", "[cluster]") {
  const auto graph = [](const std::string& links) {
    return eight_nodes + R"(graph:
  switches: {left: {}, right: {}, detour: {}}
  cables: [{from: left, to: right, bandwidth: 40 GB/s, count: 3}, {from: left, to: detour, bandwidth: 10 GB/s},
           {from: detour, to: right, bandwidth: 10 GB/s}]
  nodes: {0-3: left, 4-7: right}
links: )" + links +
           "\n";
  };
  const ClusterSpec spec = cluster_from(graph("{right to left 1: 0.5, left to detour: 0}"));
  const auto& cables = std::get<SwitchGraphSpec>(spec.fabric).cables;
  REQUIRE(cables.size() == 5);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(cables[i].count == 1);
    CHECK(cables[i].bandwidth == (i == 1 ? 20_GBps : 40_GBps));
  }
  CHECK(cables[3].is_missing());
  CHECK_FALSE(cables[4].is_missing());
  const ClusterSpec last = cluster_from(graph("{left to detour: 0, detour to left: 0.5, left to detour 0: 0.25}"));
  const auto is_narrowed = [](const SwitchGraphSpec::Cable& cable) {
    return cable.bandwidth == Bandwidth::bytes_per_second(2'500'000'000);
  };
  const auto& of_last = std::get<SwitchGraphSpec>(last.fabric).cables;
  CHECK(std::count_if(of_last.begin(), of_last.end(), is_narrowed) ==
        1);  // the last line counts, of the cable's own rate
  CHECK(problems_of(graph("{left to right: 0, left to right 1: 0, left to right 2: 0}")).empty());
  CHECK_THAT(problems_of(graph("{left to right: 0, left to right 1: 0, left to right 2: 0, detour to right: 0}")),
             Contains("cluster.yaml:14:8: error: nic 0 of node 4 has no way to nic 0 of node 0: no cables lead from "
                      "'right' to 'left'"));
  CHECK_THAT(problems_of(graph("{left to right 3: 0}")), Contains("'left to right 3' names no link"));
  CHECK_THAT(problems_of(graph("{left to nowhere: 0}")), Contains("'left to nowhere' names no link"));
}

TEST_CASE("tiers may be wired without rails, and other fabrics say themselves what they join", "[cluster]") {
  const std::string tiers = eight_nodes + "tiers: {leaf: {fan_in: 2, oversubscription: 2}, spine: {fan_in: 4}}\n";
  CHECK(cluster_from(tiers).has_rails);
  CHECK(cluster_from(tiers).rails() == 2);
  CHECK(cluster_from(tiers + "rails: false\n").rails() == 1);
  // The links of a plane that all NICs have in common are named without a rail.
  CHECK(cluster_from(tiers + "rails: false\nlinks: {leaf 3 up: 0.5}\n").degraded.size() == 1);
  CHECK_THAT(problems_of(tiers + "rails: false\nlinks: {leaf 3 rail 1 up: 0.5}\n"), Contains("names no link"));
  CHECK_THAT(problems_of(tiers + "links: {leaf 3 up: 0.5}\n"), Contains("names no link"));
  CHECK_THAT(problems_of(eight_nodes + "torus: {shape: [8], bandwidth: 1 GB/s}\nrails: false\n"),
             Contains("the nodes have no tiers"));
}
