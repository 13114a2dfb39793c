#include "sim/cluster/cluster_config.h"

#include <fstream>

#include "sim/cluster/device_facts.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/cluster/cluster_files.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

const std::string two_tiers = R"(name: small
device: A100-80GB
gpus: 64
node:
  gpus: 8
  gpu_memory: 80 GB
  host_memory: 1 TiB
  nvlink: {bandwidth: 300 GB/s, latency: 500 ns}
  nics: {count: 4, bandwidth: 200 Gbit/s}
  pcie: {bandwidth: 32 GB/s, gpus_per_uplink: 2}
tiers:
  tor: {fan_in: 4, oversubscription: 2, latency: 1 us}
  core: {fan_in: 16, latency: 3 us}
)";

}  // namespace

TEST_CASE("a cluster written out in full is read key by key", "[cluster]") {
  const ClusterSpec spec = cluster_from(two_tiers + "speed: {3: 0.5}\n");
  CHECK(spec.name == "small");
  CHECK(spec.device == "A100-80GB");
  CHECK(spec.devices == 64);
  CHECK(spec.devices_per_node == 8);
  CHECK(spec.device_memory == Bytes(80'000'000'000));
  CHECK(spec.host_memory == 1024_GiB);
  CHECK(spec.nvlink == 300_GBps);
  CHECK(spec.nvlink_latency == 500_ns);
  CHECK(spec.nics_per_node == 4);
  CHECK(spec.nic == 200_Gbps);
  CHECK(spec.pcie == 32_GBps);
  CHECK(spec.devices_per_pcie_uplink == 2);
  REQUIRE(spec.tiers.size() == 2);
  CHECK(spec.tiers[0].name == "tor");
  CHECK(spec.tiers[0].fan_in == 4);
  CHECK(spec.tiers[0].oversubscription == 2);
  CHECK(spec.tiers[0].latency == 1_us);
  CHECK(spec.tiers[1].oversubscription == 1);
  CHECK(spec.speed_of(DeviceId(3)) == 0.5);
}

TEST_CASE("what NCCL asks of a cluster has defaults by the device, and may be written", "[cluster]") {
  const ClusterSpec spec = cluster_from(two_tiers);
  CHECK(spec.compute_capability == 80);
  CHECK(spec.cpu == HostCpu::intel);
  CHECK_FALSE(spec.in_network_reduction);
  CHECK(compute_capability_of("H200-141GB") == 90);
  CHECK(compute_capability_of("B200") == 100);
  CHECK(compute_capability_of("CPU") == unknown_capability);
  const std::string amd = "host_memory: 1 TiB\n  cpu: amd";
  std::string text = two_tiers + "compute_capability: 12.1\nin_network_reduction: true\n";
  text.replace(text.find("host_memory: 1 TiB"), std::string("host_memory: 1 TiB").size(), amd);
  const ClusterSpec written = cluster_from(text);
  CHECK(written.compute_capability == 121);
  CHECK(written.cpu == HostCpu::amd);
  CHECK(written.in_network_reduction);
}

TEST_CASE("devices are numbered node by node and divided among the NICs in their order", "[cluster]") {
  const ClusterSpec spec = cluster_from(two_tiers);
  CHECK(spec.nodes() == 64 / 8);
  CHECK(spec.devices_per_nic() == 8 / 4);
  CHECK(spec.node_of(DeviceId(15)) == NodeId(1));
  CHECK(spec.nic_of(DeviceId(1)) == 0);
  CHECK(spec.nic_of(DeviceId(2)) == 1);
  CHECK(spec.nic_of(DeviceId(8)) == 4);
  CHECK(spec.nodes_per_unit(0) == 4);
  CHECK(spec.nodes_per_unit(1) == 16 * spec.nodes_per_unit(0));
}

TEST_CASE("a single gpu needs neither NVLink nor NICs nor tiers", "[cluster]") {
  const ClusterSpec spec = cluster_from(
      "{device: CPU, gpus: 1, node: {gpus: 1, gpu_memory: 4 GB, host_memory: 8 GB, pcie: {bandwidth: 5 GB/s}}}");
  CHECK(spec.nodes() == 1);
}

TEST_CASE("speeds name single gpus, ranges and every n-th one, and later lines win", "[cluster]") {
  const ClusterSpec spec =
      cluster_from(two_tiers + "speed: {every 16: 0.9, every 32 from 5: 0.7, 30-33: 0.8, 5: 1.1}\n");
  const std::map<std::int64_t, double> expected{{0, 0.9},  {5, 1.1},  {16, 0.9}, {30, 0.8}, {31, 0.8},
                                                {32, 0.8}, {33, 0.8}, {37, 0.7}, {48, 0.9}};
  CHECK(spec.speed == expected);
  CHECK(spec.speed_of(DeviceId(1)) == 1);
}

TEST_CASE("degraded links are named as reports name them, one direction or both", "[cluster]") {
  const ClusterSpec spec = cluster_from(two_tiers + R"(links:
  node 3 nic 2: 0.5
  node 7 gpu 1 nvlink out: 0.8
  tor 1 rail 3 down: 0.25
)");
  REQUIRE(spec.degraded.size() == 4);
  const DegradedLink& nic_out = spec.degraded[0];
  CHECK(nic_out.kind == DegradedLink::Kind::nic);
  CHECK(nic_out.unit == 3);
  CHECK(nic_out.index == 2);
  CHECK(nic_out.factor == 0.5);
  CHECK(nic_out.direction == LinkDirection::out);
  CHECK(spec.degraded[1].direction == LinkDirection::in);
  CHECK(spec.degraded[2].kind == DegradedLink::Kind::nvlink);
  CHECK(spec.degraded[2].unit == 7);
  CHECK(spec.degraded[2].direction == LinkDirection::out);
  CHECK(spec.degraded[3].kind == DegradedLink::Kind::tier);
  CHECK(spec.degraded[3].tier == 0);
  CHECK(spec.degraded[3].direction == LinkDirection::in);
  CHECK(spec.degraded[3].factor == 0.25);
}

TEST_CASE("links that do not exist are refused by name, with what there is", "[cluster]") {
  CHECK(problems_of(two_tiers + R"(links:
  node 8 nic 0: 0.5
  node 0 nic 4: 0.5
  core 0 rail 0: 0.5
  node 0 nic 0 up: 0.5
  node 0: 0.5
  node 0 nic 1: 1.5
)") == R"(cluster.yaml:15:3: error: there is no link 'node 8 nic 0': 8 is too high, they are 0 to 7
cluster.yaml:16:3: error: there is no link 'node 0 nic 4': 4 is too high, they are 0 to 3
cluster.yaml:17:3: error: there is no link 'core 0 rail 0': tier 'core' joins all nodes: it has no uplinks
cluster.yaml:18:3: error: 'node 0 nic 0 up' names no link; write node 3 nic 2, node 3 nic 2 port 1, node 3 gpu 1 nvlink out, TIER 1 rail 0 up, TIER 1 rail 0 plane 1 or, without rails, TIER 1 up or, in a graph, SWITCH to SWITCH
cluster.yaml:19:3: error: 'node 0' names no link; write node 3 nic 2, node 3 nic 2 port 1, node 3 gpu 1 nvlink out, TIER 1 rail 0 up, TIER 1 rail 0 plane 1 or, without rails, TIER 1 up or, in a graph, SWITCH to SWITCH
cluster.yaml:20:17: error: a share of 1.5, it must be 0 or from 0.001 to 1; 0.5 carries half, 0 is down
)");
}

TEST_CASE("a file without a cluster is told", "[cluster]") {
  CHECK(problems_of("") == "cluster.yaml: error: the cluster must be a map, found nothing\n");
  CHECK_THAT(problems_of("~\n"), Contains("the cluster must be a map, found nothing"));
}

TEST_CASE("every problem of a cluster file is told at once, with its place and what to do", "[cluster]") {
  CHECK(problems_of(R"(device: A100-80GB
gpus: 100
racks: 3
node:
  gpus: 8
  gpu_memory: 80
  host_memory: 2 TB
  nvlink: {bandwidth: 0 GB/s, latency: -1 us}
  nics: {count: 3, bandwidth: 200}
  pcie: {bandwith: 32 GB/s, gpus_per_uplink: 5}
tiers:
  tor: {fan_in: 4, oversubscription: 0.5}
  core: {fan_in: 2, oversubscription: 4}
speed:
  99: 0
  100: 0.9
  some: 0.5
)") == R"(cluster.yaml:2:7: error: 100 gpus are not a whole number of nodes of 8; write 96 or 104, or change node.gpus
cluster.yaml:2:7: error: the tiers join at most 64 gpus, the cluster has 100; raise tiers.core.fan_in or add a tier
cluster.yaml:3:1: error: the cluster has no key 'racks'; known: name, device, compute_capability, gpus, node, node_kinds, speed, tiers, rails, torus, dragonfly, graph, in_network_reduction, routing, links, notes
cluster.yaml:6:15: error: "80" has no unit; did you mean 80 GB (10^9 bytes) or 80 GiB (2^30 bytes)?
cluster.yaml:8:23: error: 'bandwidth' is 0 GB/s, it must be from 1 MB/s to 1000 TB/s
cluster.yaml:8:40: error: 'latency' is -1 us, it must be from 0 s to 1 s
cluster.yaml:9:17: error: 3 nics do not divide the node's 8 gpus; write a divisor or a multiple of 8
cluster.yaml:9:31: error: "200" has no unit; did you mean 200 GB/s (bytes) or 200 Gbit/s (bits)?
cluster.yaml:10:9: error: pcie needs 'bandwidth'
cluster.yaml:10:10: error: pcie has no key 'bandwith'; did you mean 'bandwidth'?
cluster.yaml:10:46: error: 5 gpus per PCIe uplink do not divide the node's 8 gpus; write a divisor of 8
cluster.yaml:12:38: error: 'oversubscription' is 0.5, it must be from 1 to 1000
cluster.yaml:13:39: error: 'core' is the last tier: it has no uplinks; oversubscribe the tier below it
cluster.yaml:15:7: error: a speed is 0, it must be from 0.001 to 1000; 1 is nominal, 0.8 takes a quarter longer; leave a gpu out of the job by lowering 'gpus'
cluster.yaml:16:3: error: there is no gpu 100; the cluster has gpus 0 to 99
cluster.yaml:17:3: error: 'some' names no gpus; write 17, 32-39, every 64 or every 64 from 3
)");
}

TEST_CASE("several nodes need NICs and switches", "[cluster]") {
  const std::string problems = problems_of(
      "{device: X, gpus: 4, node: {gpus: 2, gpu_memory: 1 GB, host_memory: 1 GB, pcie: {bandwidth: 1 GB/s}}}");
  CHECK_THAT(problems, Contains("the node needs 'nics': there is more than one node"));
  CHECK_THAT(problems, Contains("the tiers join at most 2 gpus, the cluster has 4"));
  CHECK_THAT(problems, Contains("add a tier of switches"));
}

TEST_CASE("sizes that would overflow are refused", "[cluster]") {
  const std::string wide = "tiers: {a: {fan_in: 1Mi}, b: {fan_in: 1Mi}, c: {fan_in: 1Mi}}";
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, " + wide + "}"), Contains("too many to count"));
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, gpus: 17Mi}"), Contains("'gpus' is 17Mi, it must be from 1 to"));
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, node: {nics: {bandwidth: 1001 TB/s}}}"),
             Contains("it must be from 1 MB/s to 1000 TB/s"));
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, tiers: {a: {fan_in: 1}, b: {fan_in: 1}}}"),
             Contains("there are 5 tiers, at most 4 are possible"));
}

TEST_CASE("values of the wrong kind are refused by name", "[cluster]") {
  CHECK_THAT(problems_of("[1, 2]"), Contains("the cluster must be a map, found a list"));
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, node: 8}"), Contains("the node must be a map, found a value"));
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, tiers: [1]}"), Contains("the tiers must be a map, found a list"));
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, speed: 0.8}"), Contains("speed must be a map, found a value"));
}

TEST_CASE("a preset takes another number of gpus and another value for any single key", "[cluster][preset]") {
  const ClusterSpec preset = cluster_from("{preset: a100-rail-3tier}");
  const ClusterSpec spec = cluster_from(
      "{preset: a100-rail-3tier, gpus: 4096, node: {nics: {bandwidth: 100 Gbit/s}}, tiers: {tor: {oversubscription: "
      "2}}}");
  CHECK(spec.devices == 4096);
  CHECK(spec.nic == 100_Gbps);
  CHECK(spec.tiers[0].oversubscription == 2);
  CHECK(spec.nvlink == preset.nvlink);
  CHECK(spec.nics_per_node == preset.nics_per_node);
  CHECK(spec.tiers[0].fan_in == preset.tiers[0].fan_in);
  CHECK(spec.tiers.size() == preset.tiers.size());
}

TEST_CASE("a problem of an override stands where the user wrote it", "[cluster][preset]") {
  CHECK(problems_of("{preset: a100-rail-3tier, gpus: 12}") ==
        R"(cluster.yaml:1:33: error: 12 gpus are not a whole number of nodes of 8; write 8 or 16, or change node.gpus
)");
  CHECK(problems_of("{preset: a100-rail-3tier, nodes: 12}") ==
        R"(cluster.yaml:1:27: error: the cluster has no key 'nodes'; did you mean 'node'?
)");
}

TEST_CASE("a preset that does not exist is answered with the closest one", "[cluster][preset]") {
  CHECK(problems_of("{preset: a100-rail-2tier}") ==
        R"(cluster.yaml:1:10: error: there is no cluster preset 'a100-rail-2tier'; did you mean 'a100-rail-3tier'?
)");
  CHECK_THAT(problems_of("{preset: a100-rail-3tier, file: x.yaml}"), Contains("either a preset or a file"));
}

TEST_CASE("a path names a cluster file beside the file that mentions it", "[cluster]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "mine.yaml") << two_tiers;
  const std::string study = (folder.path() / "study.yaml").string();
  Diagnostics diagnostics;
  const Value alone = parse_document(study, "mine.yaml", diagnostics);
  const Value changed = parse_document(study, "{file: mine.yaml, gpus: 8}", diagnostics);
  CHECK(read_cluster(alone, shipped_clusters(), diagnostics)->devices == 64);
  CHECK(read_cluster(changed, shipped_clusters(), diagnostics)->devices == 8);
  CHECK(diagnostics.empty());

  const Value missing = parse_document(study, "yours.yaml", diagnostics);
  CHECK_FALSE(read_cluster(missing, shipped_clusters(), diagnostics));
  CHECK_THAT(diagnostics.text(), Contains("yours.yaml'") && Contains("for a shipped cluster write {preset: name}"));
}

TEST_CASE("a cluster file may be based on a preset or on another file, but not on itself", "[cluster]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "mine.yaml") << "{preset: h100-rail, gpus: 64}";
  std::ofstream(folder.path() / "half.yaml") << "{file: mine.yaml, gpus: 32}";
  std::ofstream(folder.path() / "circle.yaml") << "{file: circle.yaml, gpus: 8}";
  const std::string study = (folder.path() / "study.yaml").string();
  Diagnostics diagnostics;
  const auto half = read_cluster(parse_document(study, "half.yaml", diagnostics), shipped_clusters(), diagnostics);
  REQUIRE(half);
  CHECK(half->name == "h100-rail");
  CHECK(half->devices == 32);
  CHECK_FALSE(read_cluster(parse_document(study, "circle.yaml", diagnostics), shipped_clusters(), diagnostics));
  CHECK_THAT(diagnostics.text(), Contains("circle.yaml:1:8") && Contains("does one of them name itself?"));
}

TEST_CASE("an expanded cluster reads back as the same cluster", "[cluster]") {
  Diagnostics diagnostics;
  const Value value = parse_document("study.yaml", "{preset: h100-rail, gpus: 64, speed: {7: 0.5}}", diagnostics);
  const Value full = expand_cluster(value, shipped_clusters(), diagnostics);
  CHECK(full.find("preset") == nullptr);
  const ClusterSpec spec = cluster_from(to_yaml(full));
  CHECK(spec.name == "h100-rail");
  CHECK(spec.devices == 64);
  CHECK(spec.speed_of(DeviceId(7)) == 0.5);
}

TEST_CASE("every shipped cluster is accepted and named after its file", "[cluster][preset]") {
  const auto names = cluster_preset_names(shipped_clusters());
  CHECK(names == std::vector<std::string>{"a100-rail-3tier", "a800-rail", "b200-rail", "b300-rail", "dgx-a100-superpod",
                                          "gb200-nvl72", "gb300-nvl72", "h100-500w-rail", "h100-rail", "h20-rail",
                                          "h200-rail", "h800-rail", "l40s-server", "laptop-cpu", "mi300x-rail",
                                          "mi355x-rail", "rtx-pro-6000-server", "rtx4090-workstation"});
  for (const std::string& name : names) CHECK(cluster_from("{preset: " + name + "}").name == name);
}

TEST_CASE("the rail presets give each gpu a NIC and reach hundreds of thousands of gpus", "[cluster][preset]") {
  for (const std::string name : {"a100-rail-3tier", "b200-rail", "h100-rail", "h200-rail"}) {
    const ClusterSpec spec = cluster_from("{preset: " + name + ", gpus: 131072}");
    CHECK(spec.devices_per_nic() == 1);
    CHECK(spec.tiers.size() == 3);
  }
  // 8 gpus x 64 nodes x 32 ToR sets x 64 pods.
  CHECK(cluster_from("{preset: a100-rail-3tier, gpus: 1Mi}").devices == std::int64_t{8} * 64 * 32 * 64);
}

TEST_CASE("several NICs a GPU act as one with the rates of all, also where nodes of a kind have slower ones",
          "[cluster]") {
  const std::string text = R"(device: X
gpus: 4
node: {gpus: 1, gpu_memory: 80 GB, host_memory: 1 TB, pcie: {bandwidth: 64 GB/s},
       nics: {count: 4, bandwidth: 400 Gbit/s}}
node_kinds: {old: {nodes: 3, speed: 0.5, nics: {bandwidth: 100 Gbit/s}}, slow: {nodes: 2, speed: 0.9}}
tiers: {leaf: {fan_in: 4}})";
  const ClusterSpec spec = cluster_from(text);
  CHECK(spec.nics_per_node == 1);
  CHECK(spec.nic == 400_Gbps * 4);
  CHECK(spec.notes == std::vector<std::string>{"4 NICs a gpu act as one here"});
  REQUIRE(spec.kinds.size() == 2);
  CHECK(spec.kinds[0].nic == 100_Gbps * 4);
  CHECK(spec.kinds[1].nic == spec.nic);
}

TEST_CASE("a cluster of racks has a part of one, or equal parts of as few as possible", "[cluster]") {
  const auto racks = [](std::int64_t gpus) {
    return cluster_from("{preset: gb200-nvl72, gpus: " + std::to_string(gpus) + "}");
  };
  struct Expected {
    std::int64_t gpus;
    std::int64_t nodes;
  };
  for (const auto& [gpus, nodes] :
       {Expected{1, 1}, {2, 1}, {4, 1}, {8, 1}, {64, 1}, {72, 1}, {128, 2}, {144, 2}, {256, 4}, {512, 8}, {576, 8}}) {
    CAPTURE(gpus);
    const ClusterSpec spec = racks(gpus);
    CHECK(spec.devices == gpus);
    CHECK(spec.nodes() == nodes);
    CHECK(spec.nics_per_node == spec.devices_per_node);
    // 17 TB of host memory for 72 GPUs, of which each has its share.
    CHECK(static_cast<double>(spec.host_memory.count()) == Approx(17e12 / 72 * static_cast<double>(gpus / nodes)));
  }
  CHECK(racks(8).devices_per_pcie_uplink == 2);
  CHECK(racks(1).devices_per_pcie_uplink == 1);
  // 76 is 19 trays, which no two, three or four racks share evenly; three GPUs are one and a half superchips.
  CHECK_THAT(problems_of("{preset: gb200-nvl72, gpus: 76}"),
             Contains("76 gpus are not a whole number of nodes of 72, in trays of 4") && Contains("write 72 or 80"));
  CHECK_THAT(problems_of("{preset: gb200-nvl72, gpus: 3}"), Contains("write 2 or 4"));
  CHECK_THAT(problems_of("{preset: h100-rail, gpus: 12}"), Contains("write 8 or 16"));
}
