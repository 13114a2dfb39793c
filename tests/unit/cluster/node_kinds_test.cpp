#include "tests/support/catch.h"
#include "tests/unit/cluster/cluster_files.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

// 32 H100 nodes, of which some will be A100.
const std::string hoppers = R"(device: H100-80GB
gpus: 256
node:
  gpus: 8
  gpu_memory: 80 GB
  host_memory: 2 TB
  nvlink: {bandwidth: 450 GB/s}
  nics: {count: 8, bandwidth: 400 Gbit/s}
  pcie: {bandwidth: 64 GB/s}
tiers: {leaf: {fan_in: 32}}
)";

const std::string with_amperes = hoppers + R"(node_kinds:
  old: {nodes: [4-7, 31], device: A100-40GB, speed: 0.32, gpu_memory: 40 GB, host_memory: 1 TB,
        nvlink: {bandwidth: 300 GB/s}, nics: {bandwidth: 200 Gbit/s}}
  tired: {nodes: 12, speed: 0.9}
)";

DeviceId first_of(std::size_t node) {
  return DeviceId(8 * node);
}

}  // namespace

TEST_CASE("nodes of another kind have their own rates, memory and speed", "[cluster]") {
  const ClusterSpec spec = cluster_from(with_amperes);
  for (const std::size_t node : {4, 7, 31}) {
    CHECK(spec.slowest_nvlink(NodeId(node), NodeId(node)) == 300_GBps);
    CHECK(spec.slowest_nic(NodeId(node), NodeId(node)) == 200_Gbps);
    CHECK(spec.speed_of(first_of(node)) == 0.32);
    CHECK(spec.kind_of(NodeId(node))->device == "A100-40GB");
  }
  for (const std::size_t node : {0, 3, 8, 11, 13, 30}) {
    CHECK(spec.slowest_nvlink(NodeId(node), NodeId(node)) == 450_GBps);
    CHECK(spec.slowest_nic(NodeId(node), NodeId(node)) == 400_Gbps);
    CHECK(spec.speed_of(first_of(node)) == 1);
    CHECK(spec.kind_of(NodeId(node)) == nullptr);
  }
}

TEST_CASE("what a kind does not say is as in all other nodes", "[cluster]") {
  const ClusterSpec spec = cluster_from(with_amperes);
  CHECK(spec.slowest_nvlink(NodeId(12), NodeId(12)) == 450_GBps);
  CHECK(spec.kind_of(NodeId(12))->device == "H100-80GB");
  CHECK(spec.speed_of(first_of(12)) == 0.9);
}

TEST_CASE("the speed of a gpu multiplies that of its kind", "[cluster]") {
  CHECK(cluster_from(with_amperes + "speed: {32: 0.5}\n").speed_of(first_of(4)) == 0.32 * 0.5);
}

TEST_CASE("a range of nodes is as slow as its slowest, and memory as small as the smallest", "[cluster]") {
  const ClusterSpec spec = cluster_from(with_amperes);
  CHECK(spec.slowest_nvlink(NodeId(0), NodeId(3)) == 450_GBps);
  CHECK(spec.slowest_nvlink(NodeId(0), NodeId(4)) == 300_GBps);
  CHECK(spec.slowest_nic(NodeId(5), NodeId(6)) == 200_Gbps);
  CHECK(spec.slowest_nic(NodeId(8), NodeId(30)) == 400_Gbps);
  CHECK(spec.fastest_nic() == 400_Gbps);
  CHECK(spec.least_device_memory() == Bytes(40'000'000'000));
  CHECK(spec.least_host_memory() == Bytes(1'000'000'000'000));
}

TEST_CASE("where kinds cover all nodes, nothing else counts", "[cluster]") {
  const ClusterSpec spec =
      cluster_from(hoppers + "node_kinds: {large: {nodes: 0-31, speed: 1.2, gpu_memory: 141 GB}}\n");
  CHECK(spec.least_device_memory() == Bytes(141'000'000'000));
}

TEST_CASE("what is wrong with kinds of nodes is told at once", "[cluster]") {
  CHECK(problems_of(hoppers + R"(node_kinds:
  a: {nodes: 0-40, speed: 1}
  b: {nodes: 3-1, speed: 0}
  c: {nodes: 2, speed: 1, nics: {bandwidth: 0 GB/s, count: 4}}
  d: {nodes: 2, gpus: 4}
)") == R"(cluster.yaml:12:14: error: there is no node 40; the cluster has nodes 0 to 31
cluster.yaml:13:14: error: '3-1' names no nodes; write 3, 16-31 or [3, 16-31]
cluster.yaml:13:26: error: 'speed' is 0, it must be from 0.001 to 1000
cluster.yaml:14:45: error: 'bandwidth' is 0 GB/s, it must be from 1 MB/s to 1000 TB/s
cluster.yaml:14:53: error: nics has no key 'count'; known: bandwidth
cluster.yaml:15:3: error: node 2 belongs to 'c' and to 'd'; a node is of one kind
cluster.yaml:15:6: error: the kind 'd' needs 'speed'
cluster.yaml:15:17: error: the kind 'd' has no key 'gpus'; known: nodes, speed, device, gpu_memory, host_memory, nvlink, nics
)");
}

TEST_CASE("a kind cannot add links that the other nodes do not have", "[cluster]") {
  CHECK_THAT(problems_of("{device: X, gpus: 2, node: {gpus: 1, gpu_memory: 1 GB, host_memory: 1 GB, nics: {count: 1, "
                         "bandwidth: 1 GB/s}, pcie: {bandwidth: 1 GB/s}}, tiers: {tor: {fan_in: 2}}, node_kinds: {new: "
                         "{nodes: 1, speed: 2, nvlink: {bandwidth: 1 GB/s}}}}"),
             Contains("the other nodes have no 'nvlink'"));
}
