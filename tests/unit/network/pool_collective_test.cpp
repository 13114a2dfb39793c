#include "sim/network/pool_collective.h"

#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

std::unique_ptr<Placement> placed(const std::string& name, const Mesh& mesh, const ClusterSpec& spec) {
  Diagnostics diagnostics;
  auto placement = make_placement(name, mesh, spec, diagnostics);
  REQUIRE(placement);
  return placement;
}

double seconds(const ClusterSpec& spec, const Mesh& mesh, const std::string& placement, Bytes bytes) {
  const CollectiveEfficiency efficiency{.nvlink_start = 7_us, .network_start = 9_us};
  const auto where = placed(placement, mesh, spec);
  return PoolCollective(ClusterLinks(spec, {}), efficiency, mesh, *where)(bytes).seconds();
}

}  // namespace

TEST_CASE("a pool is every device that holds the same shard of the same stage", "[pool]") {
  const Mesh mesh{.hdp = 3, .tp = 2, .pp = 4};
  const ClusterSpec spec = rail_cluster(3);
  const auto all = pools(mesh, *placed("contiguous", mesh, spec));
  REQUIRE(all.size() == 8);
  CHECK(all[0] == std::vector{DeviceId(0), DeviceId(8), DeviceId(16)});
  CHECK(all[7] == std::vector{DeviceId(7), DeviceId(15), DeviceId(23)});
}

TEST_CASE("pools that fill a symmetric cluster take what the closed form says", "[pool]") {
  // 4 ranks of 2 shards in a node: rings of 4 inside, of 16 nodes between them, both shards behind their own NICs.
  const ClusterSpec spec = rail_cluster(16);
  const CollectiveEfficiency efficiency{.nvlink_start = 7_us, .network_start = 9_us};
  const CollectiveGroup group{.devices = 64, .devices_per_node = 4, .first = device_at(0, 0), .last = device_at(15, 6)};
  CHECK(seconds(spec, {.hdp = 64, .tp = 2, .pp = 1}, "contiguous", 1_GiB) ==
        Approx(Collectives(spec, efficiency).all_gather(group, 1_GiB).seconds()));
  // One node: no NIC, and the other start.
  const CollectiveGroup inside{.devices = 8, .devices_per_node = 8, .first = device_at(0, 0), .last = device_at(0, 7)};
  CHECK(seconds(rail_cluster(1), {.hdp = 8, .tp = 1, .pp = 1}, "contiguous", 1_GiB) ==
        Approx(Collectives(rail_cluster(1), efficiency).all_gather(inside, 1_GiB).seconds()));
  CHECK(seconds(spec, {.hdp = 1, .tp = 8, .pp = 16}, "contiguous", 1_GiB) == 0);
}

TEST_CASE("devices of several pools behind one NIC divide it", "[pool]") {
  ClusterSpec spec = rail_cluster(4);
  spec.nics_per_node = 4;
  // A NIC a pair of devices, which are the two shards of a rank: each sends 3/4 of its 1/4 of the data.
  const double bytes = 1e12;
  const double expected = 2 * 0.75 / 4 * bytes / 25e9;
  CHECK(seconds(spec, {.hdp = 16, .tp = 2, .pp = 1}, "contiguous", Bytes(static_cast<std::int64_t>(bytes))) ==
        Approx(expected).epsilon(1e-4));
}

TEST_CASE("a degraded link counts for the stage that uses it, wherever its ranks stand", "[pool]") {
  // Strided: stage 0 has nodes 0 to 3, stage 1 nodes 4 to 7. The narrow NVLink is one of stage 1.
  const Mesh mesh{.hdp = 32, .tp = 1, .pp = 2};
  ClusterSpec spec = rail_cluster(8);
  spec.nvlink = 25_GBps;  // so that NVLink holds back what the NICs could do
  const double before = seconds(spec, mesh, "strided", 1000_GiB);
  spec.degraded = {{.kind = DegradedLink::Kind::nvlink, .unit = 6, .index = 5, .factor = 0.5}};
  CHECK(seconds(spec, mesh, "strided", 1000_GiB) == Approx(2 * before).epsilon(1e-4));
}

TEST_CASE("where nodes hold unlike numbers of ranks, a ring passes all of them", "[pool]") {
  // Nodes of 4 devices, stages of 3: stage 1 has device 3 of node 0 and two devices of node 1.
  const Mesh mesh{.hdp = 3, .tp = 1, .pp = 4};
  ClusterSpec spec = rail_cluster(1);
  spec.devices = 12;
  spec.devices_per_node = spec.nics_per_node = 4;
  spec.tiers[0].fan_in = 3;
  const double bytes = 1e12;
  CHECK(seconds(spec, mesh, "strided", Bytes(static_cast<std::int64_t>(bytes))) ==
        Approx(2.0 / 3 * bytes / 25e9).epsilon(1e-4));
}

TEST_CASE("expert groups are consecutive devices of a stage, and their pools the same places of all groups", "[pool]") {
  const Mesh inside{.hdp = 2, .tp = 4, .pp = 1, .ep = 2};
  const ClusterSpec one = rail_cluster(1);
  const auto groups = expert_groups(inside, *placed("contiguous", inside, one));
  REQUIRE(groups.size() == 4);
  CHECK(groups[1] == std::vector{DeviceId(2), DeviceId(3)});
  const auto of_experts = expert_pools(inside, *placed("contiguous", inside, one));
  REQUIRE(of_experts.size() == 2);
  CHECK(of_experts[1] == std::vector{DeviceId(1), DeviceId(3), DeviceId(5), DeviceId(7)});
  // Two stages of two devices a rank: groups of four reach over two ranks of one stage.
  const Mesh over{.hdp = 4, .tp = 2, .pp = 2, .ep = 4};
  const ClusterSpec two = rail_cluster(2);
  const auto spanning = expert_groups(over, *placed("contiguous", over, two));
  REQUIRE(spanning.size() == 4);
  CHECK(spanning[0] == std::vector{DeviceId(0), DeviceId(1), DeviceId(4), DeviceId(5)});
  CHECK(spanning[3] == std::vector{DeviceId(10), DeviceId(11), DeviceId(14), DeviceId(15)});
}

TEST_CASE("an all-to-all of all expert groups takes the fullest of their links", "[pool]") {
  const double bytes = 1e12;
  const auto exchange = [&](const ClusterSpec& spec, const Mesh& mesh) {
    const auto groups = expert_groups(mesh, *placed("contiguous", mesh, spec));
    const PoolCollective all(ClusterLinks(spec, {}), {}, groups, CollectiveKind::all_to_all);
    return all(Bytes(static_cast<std::int64_t>(bytes))).seconds();
  };
  // Two groups of four in a node: three quarters of what a device sends leave it, over its NVLink.
  CHECK(exchange(rail_cluster(1), {.hdp = 8, .ep = 4}) == Approx(0.75 * bytes / 300e9).epsilon(1e-4));
  // A group of two nodes: half of what each device sends goes to the other node, over one NIC each.
  CHECK(exchange(rail_cluster(2), {.hdp = 16, .ep = 16}) == Approx(0.5 * bytes / 25e9).epsilon(1e-4));
  // Sixteen nodes, groups of two of them: the others use other NICs.
  CHECK(exchange(rail_cluster(16), {.hdp = 128, .ep = 16}) == Approx(0.5 * bytes / 25e9).epsilon(1e-4));
  CHECK(exchange(rail_cluster(2), {.hdp = 16, .ep = 1}) == 0);
}
