#include "sim/network/collective.h"

#include "sim/base/check.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

CollectiveGroup in_node(std::int64_t devices) {
  return tp_group({.hdp = 1, .tp = devices, .pp = 1}, devices);
}

/// `inside` devices in each of the first `nodes` nodes.
CollectiveGroup over_nodes(std::int64_t nodes, std::int64_t inside) {
  return {.devices = nodes * inside,
          .devices_per_node = inside,
          .first = device_at(0, 0),
          .last = device_at(static_cast<std::size_t>(nodes - 1), 0)};
}

ClusterSpec without_latency(ClusterSpec spec) {
  spec.nvlink_latency = {};
  for (SwitchTier& tier : spec.tiers) tier.latency = {};
  return spec;
}

}  // namespace

TEST_CASE("a tensor-parallel group of several nodes is hierarchical", "[collective]") {
  const CollectiveGroup group = tp_group({.hdp = 1, .tp = 16, .pp = 1}, 8);
  CHECK(group.devices == 16);
  CHECK(group.devices_per_node == 8);
  CHECK(tp_group({.hdp = 1, .tp = 4, .pp = 1}, 8).devices_per_node == 4);
}

TEST_CASE("a ring of n ranks moves (n-1)/n of the data over every link", "[collective]") {
  const Collectives collectives(without_latency(rail_cluster(1)));
  const Bytes data = 8_GiB;
  for (const std::int64_t n : {2, 4, 8}) {
    const Bytes over_a_link = data / n * (n - 1);
    CHECK(collectives.all_gather(in_node(n), data) - over_a_link / 300_GBps <= 1_ps);
    CHECK(over_a_link / 300_GBps - collectives.all_gather(in_node(n), data) <= 1_ps);
  }
}

TEST_CASE("a ring all-reduce moves 2 (n-1)/n of the data over every link", "[collective]") {
  const Collectives collectives(without_latency(rail_cluster(1)));
  const double seconds = collectives.all_reduce(in_node(8), 8_GiB).seconds();
  const double bus_bandwidth =
      2.0 * 7 / 8 * static_cast<double>((8_GiB).count()) / seconds;  // As nccl-tests defines it.
  CHECK(bus_bandwidth == Approx(300e9));
}

TEST_CASE("an all-reduce is a reduce-scatter and an all-gather", "[collective]") {
  const Collectives collectives(rail_cluster(16));
  for (const auto& group : {in_node(8), over_nodes(16, 8), over_nodes(16, 1)}) {
    CHECK(collectives.all_reduce(group, 1_GiB) ==
          collectives.reduce_scatter(group, 1_GiB) + collectives.all_gather(group, 1_GiB));
  }
}

TEST_CASE("an empty collective takes n - 1 latencies, and the start once", "[collective]") {
  const CollectiveEfficiency efficiency{
      .links = {.nvlink_latency = 3_us, .network_latency = 10_us}, .nvlink_start = 7_us, .network_start = 9_us};
  const Collectives collectives(rail_cluster(16), efficiency);
  CHECK(collectives.all_gather(in_node(8), Bytes(0)) == 7_us + 7 * (3_us + 1_us));
  CHECK(collectives.all_gather(over_nodes(16, 8), Bytes(0)) == 9_us + 7 * (3_us + 1_us) + 15 * (10_us + 2_us));
  CHECK(collectives.all_reduce(in_node(2), Bytes(0)) == 7_us + 2 * (3_us + 1_us));
}

TEST_CASE("a group of one device has nothing to do", "[collective]") {
  const Collectives collectives(rail_cluster(2), {.nvlink_start = 7_us, .network_start = 9_us});
  CHECK(collectives.all_reduce(in_node(1), 1_GiB) == Duration{});
}

TEST_CASE("over nodes every rail carries its share, and the slower of NVLink and NICs sets the pace", "[collective]") {
  const Collectives collectives(without_latency(rail_cluster(16)));
  // Inside: 7/8 S at 300 GB/s. Between: 15/16 of S/8 at 25 GB/s, that is S at 213 GB/s: the NICs are slower.
  const Bytes data = 16_GiB;
  const Duration between = data / 8 / 16 * 15 / 25_GBps;
  const Duration inside = data / 8 * 7 / 300_GBps;
  REQUIRE(between > inside);
  CHECK(collectives.all_gather(over_nodes(16, 8), data).seconds() == Approx(between.seconds()));

  ClusterSpec slow_nvlink = without_latency(rail_cluster(16));
  slow_nvlink.nvlink = 100_GBps;
  CHECK(Collectives(slow_nvlink).all_gather(over_nodes(16, 8), data).seconds() ==
        Approx((data / 8 * 7 / 100_GBps).seconds()));
}

TEST_CASE("one device a node makes the hierarchical collective a plain ring over NICs", "[collective]") {
  const Collectives collectives(without_latency(rail_cluster(16)));
  CHECK(collectives.reduce_scatter(over_nodes(16, 1), 16_GiB).seconds() == Approx((15_GiB / 25_GBps).seconds()));
}

TEST_CASE("devices that have one NIC together divide it", "[collective]") {
  ClusterSpec two_a_nic = without_latency(rail_cluster(16));
  two_a_nic.nics_per_node = 4;
  const auto seconds = [](const ClusterSpec& spec) {
    return Collectives(spec).all_gather(over_nodes(16, 8), 16_GiB).seconds();
  };
  CHECK(seconds(two_a_nic) == Approx(2 * seconds(without_latency(rail_cluster(16)))));
}

TEST_CASE("a NIC at half rate halves the collectives that cross it and no others", "[collective]") {
  const ClusterSpec spec = without_latency(rail_cluster(8));
  ClusterSpec degraded = spec;
  degraded.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 3, .index = 5, .factor = 0.5}};
  const Collectives before(spec);
  const Collectives after(degraded);
  CHECK(after.all_gather(over_nodes(8, 8), 8_GiB).seconds() ==
        Approx(2 * before.all_gather(over_nodes(8, 8), 8_GiB).seconds()));
  CHECK(after.all_gather(over_nodes(3, 8), 8_GiB) == before.all_gather(over_nodes(3, 8), 8_GiB));
}

TEST_CASE("no collective beats its bytes over the NICs of a node", "[collective]") {
  const Collectives collectives(rail_cluster(16));
  for (const Bytes data : {Bytes(1), 1_KiB, 1_MiB, 1_GiB, 1024_GiB}) {
    // What 15 other nodes hold must enter each node through its 8 NICs.
    CHECK(collectives.all_gather(over_nodes(16, 8), data) >= data / 16 * 15 / (25_GBps * 8));
  }
}

TEST_CASE("more nodes and more bytes never make a collective faster", "[collective]") {
  const Collectives collectives(three_tiers(64, 2, 2));
  Duration before;
  for (std::int64_t nodes = 1; nodes <= 64; ++nodes) {
    const Duration now = collectives.all_gather(over_nodes(nodes, 8), 1_GiB);
    CHECK(now >= before);
    CHECK(now <= collectives.all_gather(over_nodes(nodes, 8), 2_GiB));
    before = now;
  }
}

TEST_CASE("a ring over nodes pays the latency of the widest tier that it crosses", "[collective]") {
  const Collectives collectives(three_tiers(64, 1, 1));
  CHECK(collectives.all_gather(over_nodes(4, 1), Bytes(0)) == 3 * 2_us);
  CHECK(collectives.all_gather(over_nodes(5, 1), Bytes(0)) == 4 * 4_us);
  CHECK(collectives.all_gather(over_nodes(9, 1), Bytes(0)) == 8 * 6_us);
}

TEST_CASE("links that software uses badly slow collectives in proportion", "[collective]") {
  const ClusterSpec spec = without_latency(rail_cluster(16));
  const Collectives bare(spec);
  const Collectives half(spec, {.links = {.nvlink = 0.5, .network = 0.5}});
  CHECK(half.all_gather(over_nodes(16, 8), 16_GiB).seconds() ==
        Approx(2 * bare.all_gather(over_nodes(16, 8), 16_GiB).seconds()));
}

TEST_CASE("a group that does not divide into its nodes is a bug", "[collective]") {
  const Collectives collectives(rail_cluster(2));
  CHECK_THROWS_AS(collectives.all_gather({.devices = 9, .devices_per_node = 8}, 1_MiB), CheckFailure);
}
