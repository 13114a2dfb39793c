#include "sim/report/cluster_report.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

/// Two nodes of two devices, a NIC of 50 GB/s over two ports for both; the second node is older.
ClusterSpec two_nodes() {
  ClusterSpec spec;
  spec.name = "two";
  spec.device = "H100";
  spec.devices = 4;
  spec.devices_per_node = 2;
  spec.device_memory = Bytes(80'000'000'000);
  spec.host_memory = Bytes(2'000'000'000'000);
  spec.nvlink = 450_GBps;
  spec.nics_per_node = 1;
  spec.nic = 50_GBps;
  spec.ports_per_nic = 2;
  spec.pcie = 64_GBps;
  spec.tiers = {{.name = "tor", .fan_in = 2, .latency = 1_us}};
  spec.kinds = {{.name = "old",
                 .device = "A100",
                 .speed = 0.5,
                 .device_memory = Bytes(40'000'000'000),
                 .host_memory = Bytes(1'000'000'000'000),
                 .nvlink = 300_GBps,
                 .nic = 25_GBps}};
  spec.kind_ranges = {{1, 1, 0}};
  spec.notes = {"as it was read"};
  return spec;
}

}  // namespace

TEST_CASE("a cluster is shown as it will be simulated", "[report]") {
  CHECK(cluster_table(report_cluster(two_nodes())) ==
        R"(two: 4 x H100 on 2 nodes of 2
  node: NVLink 450 GB/s a gpu, 1 NIC of 400 Gbit/s over 2 ports, PCIe 64.0 GB/s for 1 gpu, 80.0 GB a gpu, 2.00 TB a host
  nodes 1-1 (old): A100, speed 0.5, NVLink 300 GB/s, NICs of 200 Gbit/s, 40.0 GB a gpu, 1.00 TB a host
  tier tor: 1 unit of 2 nodes, 1:1, 1.00 us
links that can bind, each direction one
          4 x node # gpu # nvlink out: 300 GB/s to 450 GB/s
          4 x node # gpu # nvlink in: 300 GB/s to 450 GB/s
          2 x node # nic # out: 25.0 GB/s to 50.0 GB/s
          2 x node # nic # in: 25.0 GB/s to 50.0 GB/s
bisection, every gpu to the one half the cluster away: 50.0 GB/s, 12.5 GB/s a gpu
note: as it was read
)");
}

TEST_CASE("links that are down are counted and have no rate", "[report]") {
  ClusterSpec spec = two_nodes();
  spec.devices = 8;
  spec.tiers[0].fan_in = 4;
  spec.devices_per_node = 4;
  spec.nics_per_node = 2;
  spec.kinds.clear();
  spec.kind_ranges.clear();
  spec.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 0, .index = 1, .factor = 0}};
  const ClusterReport report = report_cluster(spec);
  REQUIRE(report.links[2].name == "node # nic # out");
  CHECK(report.links[2].count == 4);
  CHECK(report.links[2].down == 1);
  CHECK(report.links[2].least == 50_GBps);
  CHECK_THAT(cluster_table(report), Contains("4 x node # nic # out: 50.0 GB/s; 1 down"));
}

TEST_CASE("the JSON of a cluster holds the same figures", "[json]") {
  const auto json = nlohmann::json::parse(cluster_json(report_cluster(two_nodes()), "0.1.0"));
  CHECK(json["schema"] == "hdpsim.cluster/1");
  CHECK(json["node"]["host_memory_gb"] == 2000);
  CHECK(json["node"]["ports_per_nic"] == 2);
  CHECK(json["node_kinds"][0]["nic_gb_per_s"] == 25);
  CHECK(json["tiers"][0]["nodes_per_unit"] == 2);
  CHECK(json["links"][2]["name"] == "node # nic # out");
  CHECK(json["links"][2]["most_gb_per_s"] == 50);
  CHECK(json["bisection_gb_per_s"] == 50);  // 25 GB/s each way: the older node's NIC
  CHECK(json["notes"][0] == "as it was read");
}
