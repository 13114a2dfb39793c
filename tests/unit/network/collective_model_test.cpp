#include "sim/network/collective_model.h"

#include "sim/base/check.h"
#include "sim/network/impl/collective_choices.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

using Kind = CollectiveKind;

CollectiveRate rate(Duration latency, Duration step, Bandwidth bandwidth, Bandwidth line) {
  return {.latency = latency, .step_latency = step, .bandwidth = bandwidth, .line_rate = line, .source = "a test"};
}

/// Lines at the full rate of the links: 7 us and 3 us a step inside a node, 9 us and 10 us a step between nodes.
DeviceProfile full_rate() {
  DeviceProfile profile;
  profile.nvlink.emplace();
  profile.network.emplace();
  profile.nvlink->all_gather = profile.nvlink->reduce_scatter = profile.nvlink->all_reduce =
      rate(7_us, 3_us, 100_GBps, 100_GBps);
  profile.network->all_gather = profile.network->reduce_scatter = profile.network->all_reduce =
      rate(9_us, 10_us, 100_GBps, 100_GBps);
  return profile;
}

/// A device that nobody knows, so that NCCL's model is not asked.
ClusterSpec of_unknown_device(ClusterSpec spec) {
  spec.compute_capability = 0;
  return spec;
}

ClusterSpec without_latency(ClusterSpec spec) {
  spec.nvlink_latency = {};
  for (SwitchTier& tier : spec.tiers) tier.latency = {};
  return spec;
}

/// `inside` devices in each of the first `nodes` nodes.
DeviceSets block(std::size_t nodes, std::size_t inside) {
  DeviceSets sets(1);
  for (std::size_t node = 0; node < nodes; ++node) {
    for (std::size_t local = 0; local < inside; ++local) sets.front().push_back(device_at(node, local));
  }
  return sets;
}

CollectiveEstimate estimate(const ClusterSpec& spec, const DeviceProfile& profile, const DeviceSets& sets, Kind kind,
                            Bytes bytes) {
  const ClusterLinks links(spec, {});
  return CollectiveModel(links, profile, sets).estimate(kind, bytes);
}

/// By the lines of full_rate() alone.
Duration gather(const ClusterSpec& spec, const DeviceSets& sets, Bytes bytes) {
  return estimate(of_unknown_device(spec), full_rate(), sets, Kind::all_gather, bytes).time;
}

/// The same, as seconds of so many bytes that latencies do not matter.
double seconds_a_byte(const ClusterSpec& spec, const DeviceSets& sets, Kind kind = Kind::all_gather) {
  return estimate(of_unknown_device(spec), full_rate(), sets, kind, 1_MiB).seconds_a_byte;
}

DeviceSets pools_of(const Mesh& mesh, const std::string& placement, const ClusterSpec& spec) {
  Diagnostics diagnostics;
  const auto placed = make_placement(placement, mesh, spec, diagnostics);
  REQUIRE(placed);
  return pools(mesh, *placed);
}

}  // namespace

TEST_CASE("a ring of n ranks moves (n-1)/n of the data over every link, and twice that to sum it up everywhere",
          "[collective]") {
  for (const std::size_t n : {2, 4, 8}) {
    const double share = static_cast<double>(n - 1) / static_cast<double>(n);
    CHECK(seconds_a_byte(rail_cluster(1), block(1, n)) == Approx(share / 300e9));
    CHECK(seconds_a_byte(rail_cluster(1), block(1, n), Kind::all_reduce) == Approx(2 * share / 300e9));
  }
}

TEST_CASE("an empty collective takes the line's start and its steps, with the hops of the cluster", "[collective]") {
  const ClusterSpec spec = of_unknown_device(rail_cluster(16));
  CHECK(gather(spec, block(1, 8), Bytes(0)) == 7_us + 7 * (3_us + 1_us));
  // Of the 127 steps of a ring of all devices, 15 go from node to node.
  CHECK(gather(spec, block(16, 8), Bytes(0)) == 9_us + 112 * (3_us + 1_us) + 15 * (10_us + 2_us));
  CHECK(estimate(spec, full_rate(), block(1, 2), Kind::all_reduce, Bytes(0)).time == 7_us + 2 * (3_us + 1_us));
}

TEST_CASE("a group of one device has nothing to do", "[collective]") {
  CHECK(gather(rail_cluster(2), block(1, 1), 1_GiB) == Duration{});
  CHECK(gather(rail_cluster(2), {{DeviceId(0)}, {DeviceId(9)}}, 1_GiB) == Duration{});
}

TEST_CASE("over nodes the ring is one of all devices, and the slower of NVLink and the NICs of a node sets its pace",
          "[collective]") {
  // 8 NICs of 25 GB/s are slower than NVLink of 300 GB/s; of NVLink at 100 GB/s they are faster.
  ClusterSpec spec = rail_cluster(16);
  CHECK(seconds_a_byte(spec, block(2, 8)) == Approx(15.0 / 16 / 200e9));
  CHECK(seconds_a_byte(spec, block(16, 8)) == Approx(127.0 / 128 / 200e9));
  CHECK(seconds_a_byte(spec, block(16, 1)) == Approx(15.0 / 16 / 25e9));
  spec.nvlink = 100_GBps;
  CHECK(seconds_a_byte(spec, block(16, 8)) == Approx(127.0 / 128 / 100e9));
}

TEST_CASE("devices that have one NIC together divide it, of one set or of several", "[collective]") {
  ClusterSpec spec = rail_cluster(16);
  spec.nics_per_node = 4;
  CHECK(seconds_a_byte(spec, block(16, 8)) == Approx(127.0 / 128 / 100e9));
  // Sixteen ranks of two shards on four nodes: each pool has every second device of a node.
  spec.devices = 32;
  const DeviceSets both = pools_of({.hdp = 16, .tp = 2}, "contiguous", spec);
  REQUIRE(both.size() == 2);
  CHECK(seconds_a_byte(spec, both) == Approx(2 * 15.0 / 16 / 100e9));
}

TEST_CASE("a degraded link slows the sets that cross it, in proportion, and no others", "[collective]") {
  ClusterSpec spec = rail_cluster(8);
  const double whole = seconds_a_byte(spec, block(8, 8));
  const double three = seconds_a_byte(spec, block(3, 8));
  spec.degraded = {{.kind = DegradedLink::Kind::nic, .unit = 3, .index = 5, .factor = 0.5}};
  CHECK(seconds_a_byte(spec, block(8, 8)) == Approx(2 * whole));
  CHECK(seconds_a_byte(spec, block(3, 8)) == Approx(three));
  // Strided: stage 0 has nodes 0 to 3, stage 1 nodes 4 to 7. The narrow NVLink is one of stage 1, and all end together.
  ClusterSpec stages = rail_cluster(8);
  stages.nvlink = 25_GBps;
  const DeviceSets sets = pools_of({.hdp = 32, .tp = 1, .pp = 2}, "strided", stages);
  const double before = seconds_a_byte(stages, sets);
  stages.degraded = {{.kind = DegradedLink::Kind::nvlink, .unit = 6, .index = 0, .factor = 0.5}};
  CHECK(seconds_a_byte(stages, sets) > 1.7 * before);
}

TEST_CASE("where nodes hold unlike numbers of ranks, a ring passes all of them", "[collective]") {
  // Nodes of 4 devices, stages of 3: stage 1 has device 3 of node 0 and two devices of node 1.
  ClusterSpec spec = rail_cluster(1);
  spec.devices = 12;
  spec.devices_per_node = spec.nics_per_node = 4;
  spec.tiers[0].fan_in = 3;
  const DeviceSets sets = pools_of({.hdp = 3, .tp = 1, .pp = 4}, "strided", spec);
  CHECK(seconds_a_byte(spec, sets) == Approx(2.0 / 3 / 25e9));
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all}) {
    CHECK(estimate(spec, {}, sets, kind, 1_MiB).basis == CollectiveBasis::nccl_model);
    CHECK(estimate(spec, {}, sets, kind, 1_MiB).time > 1_MiB / (25_GBps * 4));
  }
}

TEST_CASE("an all-to-all of all expert groups takes the fullest of their links", "[collective]") {
  const auto exchange = [](const ClusterSpec& spec, const Mesh& mesh) {
    Diagnostics diagnostics;
    const auto placed = make_placement("contiguous", mesh, spec, diagnostics);
    REQUIRE(placed);
    const ClusterSpec unknown = of_unknown_device(spec);
    return estimate(unknown, {}, expert_groups(mesh, *placed), Kind::all_to_all, 1_MiB).seconds_a_byte;
  };
  // Two groups of four in a node: three quarters of what a device sends leave it, over its NVLink.
  CHECK(exchange(rail_cluster(1), {.hdp = 8, .ep = 4}) == Approx(0.75 / 300e9));
  // A group of two nodes: half of what each device sends goes to the other node, over one NIC each.
  CHECK(exchange(rail_cluster(2), {.hdp = 16, .ep = 16}) == Approx(0.5 / 25e9));
  // Sixteen nodes, groups of two of them: the others use other NICs.
  CHECK(exchange(rail_cluster(16), {.hdp = 128, .ep = 16}) == Approx(0.5 / 25e9));
}

TEST_CASE("a pool is every device that holds the same shard of the same stage", "[collective]") {
  const auto all = pools_of({.hdp = 3, .tp = 2, .pp = 4}, "contiguous", rail_cluster(3));
  REQUIRE(all.size() == 8);
  CHECK(all[0] == std::vector{DeviceId(0), DeviceId(8), DeviceId(16)});
  CHECK(all[7] == std::vector{DeviceId(7), DeviceId(15), DeviceId(23)});
}

TEST_CASE("expert groups are consecutive devices of a stage, and their pools the same places of all groups",
          "[collective]") {
  const auto placed = [](const Mesh& mesh, const ClusterSpec& spec) {
    Diagnostics diagnostics;
    return make_placement("contiguous", mesh, spec, diagnostics);
  };
  const Mesh inside{.hdp = 2, .tp = 4, .pp = 1, .ep = 2};
  const auto groups = expert_groups(inside, *placed(inside, rail_cluster(1)));
  REQUIRE(groups.size() == 4);
  CHECK(groups[1] == std::vector{DeviceId(2), DeviceId(3)});
  const auto same_experts = expert_pools(inside, *placed(inside, rail_cluster(1)));
  REQUIRE(same_experts.size() == 2);
  CHECK(same_experts[1] == std::vector{DeviceId(1), DeviceId(3), DeviceId(5), DeviceId(7)});
  // Two stages of two devices a rank: groups of four reach over two ranks of one stage.
  const Mesh over{.hdp = 4, .tp = 2, .pp = 2, .ep = 4};
  const auto spanning = expert_groups(over, *placed(over, rail_cluster(2)));
  REQUIRE(spanning.size() == 4);
  CHECK(spanning[0] == std::vector{DeviceId(0), DeviceId(1), DeviceId(4), DeviceId(5)});
  CHECK(spanning[3] == std::vector{DeviceId(10), DeviceId(11), DeviceId(14), DeviceId(15)});
}

TEST_CASE("devices that cut experts are neighbours, and tokens travel between the same places of them",
          "[collective]") {
  const Mesh mesh{.hdp = 2, .tp = 4, .pp = 1, .ep = 2, .etp = 2};
  Diagnostics diagnostics;
  const auto placement = make_placement("strided", mesh, rail_cluster(1), diagnostics);
  const auto devices = [](std::size_t first, std::size_t second) {
    return std::vector{DeviceId(first), DeviceId(second)};
  };
  CHECK(expert_cuts(mesh, *placement) == DeviceSets{devices(0, 1), devices(2, 3), devices(4, 5), devices(6, 7)});
  CHECK(expert_groups(mesh, *placement) == DeviceSets{devices(0, 2), devices(1, 3), devices(4, 6), devices(5, 7)});
  CHECK(expert_pools(mesh, *placement) == DeviceSets{devices(0, 4), devices(1, 5), devices(2, 6), devices(3, 7)});
  CHECK(mesh.expert_pool() == 2);
}

TEST_CASE("groups that shard states are consecutive ranks of a pool, and replicas the same places of them",
          "[collective]") {
  const Mesh mesh{.hdp = 4, .tp = 2, .pp = 1, .shard_ranks = 2};
  Diagnostics diagnostics;
  const auto placement = make_placement("contiguous", mesh, rail_cluster(1), diagnostics);
  const DeviceSets all = pools(mesh, *placement);
  CHECK(shard_groups(all, 2) == DeviceSets{{DeviceId(0), DeviceId(2)},
                                           {DeviceId(4), DeviceId(6)},
                                           {DeviceId(1), DeviceId(3)},
                                           {DeviceId(5), DeviceId(7)}});
  CHECK(shard_replicas(all, 2) == DeviceSets{{DeviceId(0), DeviceId(4)},
                                             {DeviceId(2), DeviceId(6)},
                                             {DeviceId(1), DeviceId(5)},
                                             {DeviceId(3), DeviceId(7)}});
}

TEST_CASE("no collective beats its bytes over the NICs of a node", "[collective]") {
  for (const Bytes data : {Bytes(1), 1_KiB, 1_MiB, 1_GiB, 1024_GiB}) {
    // What 15 other nodes hold must enter each node through its 8 NICs.
    CHECK(gather(rail_cluster(16), block(16, 8), data) >= data / 16 * 15 / (25_GBps * 8));
  }
}

TEST_CASE("more nodes and more bytes never make a collective faster", "[collective]") {
  const ClusterSpec spec = three_tiers(64, 2, 2);
  Duration before;
  for (std::size_t nodes = 2; nodes <= 64; ++nodes) {
    const Duration now = gather(spec, block(nodes, 8), 1_GiB);
    CHECK(now >= before);
    CHECK(now <= gather(spec, block(nodes, 8), 2_GiB));
    before = now;
  }
}

TEST_CASE("a ring over nodes pays the latency of the widest tier that it crosses", "[collective]") {
  const ClusterSpec spec = three_tiers(64, 1, 1);
  CHECK(gather(spec, block(4, 1), Bytes(0)) == 9_us + 3 * (10_us + 2_us));
  CHECK(gather(spec, block(5, 1), Bytes(0)) == 9_us + 4 * (10_us + 4_us));
  CHECK(gather(spec, block(9, 1), Bytes(0)) == 9_us + 8 * (10_us + 6_us));
}

TEST_CASE("a line's share of its own line rate is kept on other links", "[collective]") {
  DeviceProfile profile = full_rate();
  profile.nvlink->all_gather = rate(20_us, 3_us, 160_GBps, 200_GBps);
  profile.network->all_gather = rate(8_us, 14_us, 45_GBps, 50_GBps);
  const ClusterSpec spec = without_latency(rail_cluster(4));
  const auto inside = estimate(spec, profile, block(1, 8), Kind::all_gather, 1_GiB);
  CHECK(inside.basis == CollectiveBasis::profile);
  CHECK(inside.latency_s == Approx(20e-6 + 7 * 3e-6));
  CHECK(inside.seconds_a_byte == Approx(7.0 / 8 / (0.8 * 300e9)));
  const auto over = estimate(spec, profile, block(4, 2), Kind::all_gather, 1_GiB);
  CHECK(over.latency_s == Approx(8e-6 + 3 * 14e-6 + 4 * 3e-6));
  CHECK(over.seconds_a_byte == Approx(7.0 / 8 / (0.9 * 2 * 25e9)));
  // Reduced in the switches, which send less than a ring: faster than the link.
  profile.nvlink->all_reduce = rate(20_us, 2_us, 330_GBps, 300_GBps);
  const auto reduced = estimate(spec, profile, block(1, 8), Kind::all_reduce, 1_GiB);
  CHECK(reduced.algorithm == CollectiveAlgorithm::nvls);
  CHECK(reduced.seconds_a_byte == Approx(2 * 7.0 / 8 / 330e9));
}

TEST_CASE("a broadcast waits for its first chunk to pass all ranks", "[collective]") {
  const ClusterSpec spec = without_latency(rail_cluster(4));
  const auto latency = [&](const DeviceSets& sets) {
    return estimate(spec, full_rate(), sets, Kind::broadcast, 1_GiB).latency_s;
  };
  CHECK(latency(block(1, 8)) == Approx(8.4e-6 + 7 * 3.4e-6));
  CHECK(latency(block(4, 2)) == Approx(8.4e-6 + 3 * 14e-6 + 4 * 3.4e-6));
}

TEST_CASE("a measured curve comes before a line, a line before NCCL's model, and that before the closed form",
          "[collective]") {
  const ClusterSpec spec = rail_cluster(2);
  DeviceProfile profile = full_rate();
  profile.provenance.device = spec.device;
  profile.fits.messages = {{.link = LinkKind::nvlink,
                            .kind = MessageKind::all_gather,
                            .ranks = 8,
                            .lines = {{.latency = 50_us, .bandwidth = 1_GBps}},
                            .curve = {},
                            .least = 1_KiB,
                            .most = 1_MiB,
                            .quality = {}}};
  const auto basis = [&](const ClusterSpec& cluster, std::size_t nodes, std::size_t inside, Kind kind, Bytes bytes) {
    return estimate(cluster, profile, block(nodes, inside), kind, bytes).basis;
  };
  CHECK(basis(spec, 1, 8, Kind::all_gather, 1_MiB) == CollectiveBasis::measured);
  CHECK(estimate(spec, profile, block(1, 8), Kind::all_gather, 1_MiB).time == 50_us + 1_MiB / 1_GBps);
  CHECK(estimate(spec, profile, block(1, 8), Kind::all_gather, 1_MiB).evidence == Evidence::interpolated);
  // Of another size, among others, of another kind, over nodes, of another device: the line.
  CHECK(basis(spec, 1, 8, Kind::all_gather, 1_GiB) == CollectiveBasis::profile);
  CHECK(basis(spec, 1, 4, Kind::all_gather, 1_GiB) == CollectiveBasis::profile);
  CHECK(basis(spec, 1, 8, Kind::reduce_scatter, 1_GiB) == CollectiveBasis::profile);
  CHECK(basis(spec, 2, 4, Kind::all_gather, 1_GiB) == CollectiveBasis::profile);
  ClusterSpec other = spec;
  other.device = "H100-80GB";
  CHECK(basis(other, 1, 8, Kind::all_gather, 1_GiB) == CollectiveBasis::profile);
  // The profile has no line for it, or none between nodes.
  CHECK(basis(spec, 1, 8, Kind::broadcast, 1_MiB) == CollectiveBasis::nccl_model);
  profile.network.reset();
  CHECK(basis(spec, 2, 4, Kind::all_gather, 1_MiB) == CollectiveBasis::nccl_model);
  CHECK(basis(of_unknown_device(spec), 2, 4, Kind::all_gather, 1_MiB) == CollectiveBasis::closed_form);
  CHECK(basis(of_unknown_device(spec), 1, 8, Kind::broadcast, 1_MiB) == CollectiveBasis::closed_form);
}

TEST_CASE(
    "messages for which NCCL has something faster than rings are priced by its model, at no more than the line's rate",
    "[collective]") {
  const ClusterSpec spec = rail_cluster(16);
  for (const Kind kind : {Kind::all_gather, Kind::all_reduce}) {
    const auto line = [&](Bytes bytes) {
      return estimate(of_unknown_device(spec), full_rate(), block(16, 8), kind, bytes);
    };
    const auto small = estimate(spec, full_rate(), block(16, 8), kind, 64_KiB);
    CHECK(small.basis == CollectiveBasis::nccl_model);
    CHECK(small.protocol != Protocol::simple);
    CHECK(small.time < line(64_KiB).time);
    CHECK(small.seconds_a_byte >= line(64_KiB).seconds_a_byte);
    const auto large = estimate(spec, full_rate(), block(1, 8), kind, 4_GiB);
    CHECK(large.basis == CollectiveBasis::profile);
    for (const Bytes bytes : {1_KiB, 1_MiB, 16_MiB, 256_MiB, 4_GiB}) {
      CHECK(estimate(spec, full_rate(), block(16, 8), kind, bytes).time <= line(bytes).time);
    }
  }
}

TEST_CASE("switches that add up serve three devices and more; two exchange as others do", "[collective]") {
  const ClusterSpec spec = of_unknown_device(rail_cluster(1));
  DeviceProfile profile = full_rate();
  profile.nvlink->all_reduce = rate(7_us, 3_us, 150_GBps, 100_GBps);  // faster than its link, as NVLS is
  CHECK(estimate(spec, profile, block(1, 2), Kind::all_reduce, 1_GiB).algorithm == CollectiveAlgorithm::ring);
  CHECK(estimate(spec, profile, block(1, 3), Kind::all_reduce, 1_GiB).algorithm == CollectiveAlgorithm::nvls);
  // Two pass on what an all-gather passes on, twice: at its share of the link, here all of it.
  CHECK(estimate(spec, profile, block(1, 2), Kind::all_reduce, 1_GiB).seconds_a_byte == Approx(1 / 300e9));
}

TEST_CASE("what a study makes of all collectives it makes of each, whatever it rests on; links keep their rates",
          "[collective]") {
  const ClusterSpec known = rail_cluster(2);
  const ClusterSpec unknown = of_unknown_device(known);
  for (const DeviceProfile& profile : {full_rate(), DeviceProfile{}}) {
    for (const ClusterSpec& spec : {known, unknown}) {
      DeviceProfile slower = profile;
      slower.factors[CostFamily::collectives] = 2;
      DeviceProfile faster = profile;
      faster.factors[CostFamily::collectives] = 0.5;
      const auto time = [&](const DeviceProfile& one) {
        return estimate(without_latency(spec), one, block(2, 8), Kind::all_gather, 1_GiB);
      };
      CHECK(time(slower).time.seconds() == Approx(2 * time(profile).time.seconds()));
      CHECK(time(faster).seconds_a_byte >= 15.0 / 16 / 200e9 * (1 - 1e-9));
    }
  }
}

TEST_CASE("NCCL's choice can be restricted, and what NCCL does not have is nothing", "[collective]") {
  const ClusterLinks links(rail_cluster(2), {});
  const DeviceProfile profile = full_rate();
  const CollectiveModel model(links, profile, block(2, 8));
  const auto tree = model.estimate(Kind::all_reduce, 1_MiB, {CollectiveAlgorithm::tree, Protocol::ll128});
  REQUIRE(tree);
  CHECK(tree->basis == CollectiveBasis::nccl_model);
  CHECK(tree->algorithm == CollectiveAlgorithm::tree);
  CHECK(tree->wire_bytes == Approx(128.0 / 120));
  CHECK_FALSE(model.estimate(Kind::all_gather, 1_MiB, {CollectiveAlgorithm::tree, {}}));
  CHECK(model.estimate(Kind::all_gather, 1_GiB, NcclChoice{})->basis == CollectiveBasis::profile);
}

TEST_CASE("switches between nodes that add up make large all-reduces faster, and nothing inside a node",
          "[collective]") {
  const auto estimate = [](const ClusterSpec& cluster, const DeviceProfile& profile, const DeviceSets& sets,
                           Kind kind) {
    const ClusterLinks links(cluster, {});
    return CollectiveModel(links, profile, sets).estimate(kind, 1_GiB);
  };
  for (const int capability : {80, 90}) {
    for (const bool has_lines : {false, true}) {
      CAPTURE(capability, has_lines);
      ClusterSpec spec = rail_cluster(16);
      spec.compute_capability = capability;
      if (capability == 90) spec.nvlink = 450_GBps;
      if (capability == 90) spec.nic = 50_GBps;
      ClusterSpec adds_up = spec;
      adds_up.in_network_reduction = true;
      const DeviceProfile profile = has_lines ? full_rate() : DeviceProfile{};
      const CollectiveEstimate faster = estimate(adds_up, profile, block(16, 8), Kind::all_reduce);
      CHECK(faster.time < estimate(spec, profile, block(16, 8), Kind::all_reduce).time);
      CHECK(faster.algorithm == (capability < 90 ? CollectiveAlgorithm::collnet_direct : CollectiveAlgorithm::nvls));
      CHECK(faster.basis == CollectiveBasis::nccl_model);
      for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter}) {
        CHECK(estimate(adds_up, profile, block(1, 8), kind).time == estimate(spec, profile, block(1, 8), kind).time);
      }
    }
  }
  ClusterSpec torus = rail_cluster(16);
  torus.in_network_reduction = true;
  torus.tiers.clear();
  torus.fabric = TorusSpec{{4, 4}, 25_GBps, 1_us};
  ClusterSpec plain = torus;
  plain.in_network_reduction = false;
  CHECK(estimate(torus, {}, block(16, 8), Kind::all_reduce).time ==
        estimate(plain, {}, block(16, 8), Kind::all_reduce).time);
}

TEST_CASE("the flows of a collective are those that its time was computed with", "[collective]") {
  const ClusterLinks links(rail_cluster(2), {});
  const DeviceProfile profile = full_rate();
  const CollectiveModel model(links, profile, pools_of({.hdp = 8, .tp = 2}, "contiguous", rail_cluster(2)));
  const CollectiveEstimate& gather = model.estimate(Kind::all_gather, 1_GiB);
  const CollectivePlan flows = model.flows(Kind::all_gather, gather);
  CHECK(flows.parts.size() == 2);
  CHECK(seconds_a_byte(flows, links) <= gather.seconds_a_byte * (1 + 1e-9));
}

TEST_CASE("sets of unlike size are a bug", "[collective]") {
  const ClusterLinks links(rail_cluster(2), {});
  const DeviceProfile profile;
  CHECK_THROWS_AS(CollectiveModel(links, profile, {{DeviceId(0), DeviceId(1)}, {DeviceId(2)}}), CheckFailure);
}
