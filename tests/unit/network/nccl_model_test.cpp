#include "sim/network/impl/nccl_model.h"
#include "sim/network/impl/algorithms.h"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

constexpr double nvlink = 450e9;
constexpr double nccl_nic = 50e9;

NcclGroup h100(std::int64_t nodes) {
  return {.ranks = 8 * nodes, .nodes = nodes, .nvlink_bytes_per_s = nvlink, .network_bytes_per_s = nccl_nic};
}

// What NCCL would choose.
CollectiveTime best_of(const NcclGroup& group, CollectiveKind kind, std::int64_t bytes) {
  const std::vector<CollectiveTime> ways = nccl_ways(group, kind, bytes);
  REQUIRE(!ways.empty());
  return *std::min_element(ways.begin(), ways.end(),
                           [](const CollectiveTime& a, const CollectiveTime& b) { return a.seconds < b.seconds; });
}

CollectiveTime way(const NcclGroup& group, CollectiveKind kind, std::int64_t bytes, CollectiveAlgorithm algorithm,
                   Protocol protocol) {
  for (const CollectiveTime& one : nccl_ways(group, kind, bytes)) {
    if (one.algorithm == algorithm && one.protocol == protocol) return one;
  }
  FAIL("there is no such way");
  return {};
}

}  // namespace

TEST_CASE("a bus bandwidth is that of the busiest link, as nccl-tests defines it", "[nccl]") {
  CHECK(bus_factor(CollectiveKind::all_reduce, 8) == Approx(2 * 7.0 / 8));
  CHECK(bus_factor(CollectiveKind::all_gather, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(CollectiveKind::broadcast, 8) == 1);
}

TEST_CASE("a ring all-reduce in a node: 14 steps of NVLink latency and 14/8 of the data over every link", "[nccl]") {
  const std::int64_t bytes = 1 << 30;
  const CollectiveTime simple =
      way(h100(1), CollectiveKind::all_reduce, bytes, CollectiveAlgorithm::ring, Protocol::simple);
  CHECK(simple.seconds == Approx((8.4 + 14 * 3.4) * 1e-6 + 14.0 / 8 * static_cast<double>(bytes) / nvlink));
  const CollectiveTime ll128 =
      way(h100(1), CollectiveKind::all_reduce, bytes, CollectiveAlgorithm::ring, Protocol::ll128);
  CHECK(ll128.seconds == Approx((14.0 + 14 * 1.9) * 1e-6 + 14.0 / 8 * static_cast<double>(bytes) / (0.92 * nvlink)));
}

TEST_CASE("over nodes each boundary costs a network step, and the NICs of a node or its NVLink set the rate",
          "[nccl]") {
  const NcclGroup four = h100(4);
  const std::int64_t bytes = 1 << 30;
  // 31 steps, three of them over the network; eight NICs carry 400 GB/s, less than NVLink.
  const CollectiveTime gather =
      way(four, CollectiveKind::all_gather, bytes, CollectiveAlgorithm::ring, Protocol::simple);
  CHECK(gather.seconds ==
        Approx((8.4 + 28 * 3.4 + 3 * 14.0) * 1e-6 + 31.0 / 32 * static_cast<double>(bytes) / (8 * nccl_nic)));
}

TEST_CASE("with one rank a node nothing hides the network: a ring's hop waits as long as a tree's", "[nccl]") {
  NcclGroup lone = h100(4);
  lone.ranks = 4;
  const CollectiveTime ll = way(lone, CollectiveKind::all_gather, 8, CollectiveAlgorithm::ring, Protocol::ll);
  CHECK(ll.latency_s == Approx((6.6 + 3 * 5.0) * 1e-6));
  // PAT: 8 us, two levels of 14 / 3.5 us, 2.8 us a rank; three quarters of the NIC.
  const CollectiveTime pat = way(lone, CollectiveKind::all_gather, 1 << 30, CollectiveAlgorithm::pat, Protocol::simple);
  CHECK(pat.latency_s == Approx((8 + 2 * 14 / 3.5 + 4 * 2.8) * 1e-6));
  CHECK(pat.bytes_per_s == Approx(0.75 * nccl_nic));
}

TEST_CASE("a step inside a node is never shorter than what the network asks of a rank", "[nccl]") {
  // Two nodes of 8: 15 steps, one over the network, the others 1 us instead of the 0.6 us of NVLink.
  const CollectiveTime ll = way(h100(2), CollectiveKind::all_gather, 8, CollectiveAlgorithm::ring, Protocol::ll);
  CHECK(ll.latency_s == Approx((6.6 + 14 * 1.0 + 2.7) * 1e-6));
}

TEST_CASE("LL carries what the GPU can in a node and what the host's processor can over nodes", "[nccl]") {
  const auto rate = [](NcclGroup group) {
    group.nvlink_bytes_per_s = 2000e9;
    group.network_bytes_per_s = 200e9;
    const double share = static_cast<double>(group.ranks) / static_cast<double>(group.ranks - 1);
    return way(group, CollectiveKind::all_gather, 1 << 20, CollectiveAlgorithm::ring, Protocol::ll).bytes_per_s / share;
  };
  NcclGroup group = h100(1);
  CHECK(rate(group) == Approx(141e9));
  group.compute_capability = 80;
  CHECK(rate(group) == Approx(87.7e9));
  group.compute_capability = 100;
  CHECK(rate(group) == Approx(282e9));
  CHECK(rate(h100(2)) == Approx(39e9));
  CHECK(rate(h100(3)) == Approx(20.4e9));
  NcclGroup amd = h100(2);
  amd.has_amd_hosts = true;
  CHECK(rate(amd) == Approx(22.5e9));
  NcclGroup many = h100(64);
  many.has_amd_hosts = true;
  CHECK(rate(many) == Approx(19e9));
}

TEST_CASE("a tree loses 8 % with every protocol, and more with LL and LL128", "[nccl]") {
  const std::int64_t bytes = std::int64_t{1} << 31;  // beyond the correction
  const auto rate = [&](std::int64_t nodes, Protocol protocol) {
    return way(h100(nodes), CollectiveKind::all_reduce, bytes, CollectiveAlgorithm::tree, protocol).bytes_per_s;
  };
  CHECK(rate(1, Protocol::simple) == Approx(0.92 * nvlink / 2));
  CHECK(rate(1, Protocol::ll) == Approx(0.92 * nvlink / 3.8 / 2));
  CHECK(rate(1, Protocol::ll128) == Approx(0.92 * nvlink * 7 / 9 / 2));
  CHECK(rate(4, Protocol::ll128) == Approx(0.92 * 8 * nccl_nic * 120 / 128 / 2));
}

TEST_CASE("NVLS: 85 % on Hopper, 74 % on Blackwell, none before; gathers and scatters too", "[nccl]") {
  const auto nvls = [](NcclGroup group, CollectiveKind kind) {
    return way(group, kind, 1 << 30, CollectiveAlgorithm::nvls, Protocol::simple);
  };
  NcclGroup group = h100(1);
  CHECK(nvls(group, CollectiveKind::all_reduce).bytes_per_s == Approx(0.85 * nvlink * 5 / 6));
  CHECK(nvls(group, CollectiveKind::all_reduce).latency_s == Approx(25e-6));
  CHECK(nvls(group, CollectiveKind::all_gather).bytes_per_s == Approx(0.85 * nvlink * 7 / 8));
  group.compute_capability = 100;
  CHECK(nvls(group, CollectiveKind::reduce_scatter).bytes_per_s == Approx(0.74 * nvlink * 7 / 8));
  group.compute_capability = 80;
  const auto ways = nccl_ways(group, CollectiveKind::all_reduce, 1 << 20);
  CHECK(std::none_of(ways.begin(), ways.end(),
                     [](const CollectiveTime& one) { return one.algorithm == CollectiveAlgorithm::nvls; }));
}

TEST_CASE("over nodes NVLS joins by trees, and in the switches where they add up", "[nccl]") {
  const auto tree = [](std::int64_t nodes) {
    return way(h100(nodes), CollectiveKind::all_reduce, 1 << 30, CollectiveAlgorithm::nvls_tree, Protocol::simple);
  };
  CHECK(tree(2).bytes_per_s == Approx(0.85 * 8 * nccl_nic * 5 / 6));
  CHECK(tree(16).bytes_per_s == Approx(0.85 * 4 * nccl_nic * 5 / 6));
  CHECK(tree(16).latency_s == Approx((25 + 2 * 4 * 14.0) * 1e-6));
  NcclGroup sharp = h100(16);
  sharp.in_network_reduction = true;
  const CollectiveTime in_switch =
      way(sharp, CollectiveKind::all_reduce, 1 << 30, CollectiveAlgorithm::nvls, Protocol::simple);
  CHECK(in_switch.bytes_per_s == Approx(0.85 * 8 * nccl_nic * 5 / 6));
  CHECK(in_switch.latency_s == Approx((25 + 18) * 1e-6));
  const auto without = nccl_ways(h100(16), CollectiveKind::all_reduce, 1 << 30);
  CHECK(std::none_of(without.begin(), without.end(),
                     [](const CollectiveTime& one) { return one.algorithm == CollectiveAlgorithm::nvls; }));
}

TEST_CASE("a ring over nodes waits 40 % longer once each channel and rank has 64 bytes", "[nccl]") {
  NcclGroup group = h100(2);
  group.channels = 8;
  const auto latency = [&](std::int64_t bytes) {
    return way(group, CollectiveKind::all_reduce, bytes, CollectiveAlgorithm::ring, Protocol::simple).latency_s;
  };
  CHECK(latency(64 * 16 * 8) == Approx(1.4 * latency(64 * 16 * 8 - 1)));
  CHECK(latency(8) == Approx((8.4 + 28 * 3.4 + 2 * 14) * 1e-6));
}

TEST_CASE("a broadcast's chunks follow each other: one hop, whatever the number of ranks", "[nccl]") {
  const auto latency = [](std::int64_t nodes) {
    return way(h100(nodes), CollectiveKind::broadcast, 8, CollectiveAlgorithm::ring, Protocol::simple).latency_s;
  };
  CHECK(latency(1) == Approx((8.4 + 3.4) * 1e-6));
  CHECK(latency(16) == Approx((8.4 + 14) * 1e-6));
}

TEST_CASE("small messages go by LL, large ones by the protocol that wastes least", "[nccl]") {
  const NcclGroup model = h100(1);
  CHECK(best_of(model, CollectiveKind::all_reduce, 1024).protocol == Protocol::ll);
  CHECK(best_of(model, CollectiveKind::all_gather, std::int64_t{1} << 33).protocol == Protocol::simple);
  CHECK(best_of(model, CollectiveKind::all_reduce, std::int64_t{1} << 33).algorithm == CollectiveAlgorithm::nvls);
}

TEST_CASE("trees win many nodes over at small sizes: their latency grows with the logarithm", "[nccl]") {
  const NcclGroup model = h100(128);
  CHECK(best_of(model, CollectiveKind::all_reduce, 8).algorithm == CollectiveAlgorithm::tree);
  const double at_128 = best_of(model, CollectiveKind::all_reduce, 8).seconds;
  const double at_1024 = best_of(h100(1024), CollectiveKind::all_reduce, 8).seconds;
  CHECK(at_1024 - at_128 == Approx(2 * 3 * 5.0e-6));  // three more levels, up and down
}

TEST_CASE("the best way is the lower envelope of all ways, and more bytes never take less time by the ring", "[nccl]") {
  for (const std::int64_t nodes : {1, 2, 16, 512}) {
    const NcclGroup model = h100(nodes);
    double before = 0;
    for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 33; bytes *= 2) {
      CAPTURE(nodes, bytes);
      const auto ways = nccl_ways(model, CollectiveKind::all_reduce, bytes);
      const double best = best_of(model, CollectiveKind::all_reduce, bytes).seconds;
      for (const CollectiveTime& one : ways) CHECK(best <= one.seconds);
      const double gather = best_of(model, CollectiveKind::all_gather, bytes).seconds;
      CHECK(gather >= before);
      before = gather;
    }
  }
}

TEST_CASE("no way beats the bytes over its slowest link", "[nccl]") {
  const std::int64_t bytes = std::int64_t{1} << 32;
  for (const std::int64_t nodes : {2, 16}) {
    const NcclGroup group = h100(nodes);
    for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
      const double out_of_a_node =
          static_cast<double>(bytes) * static_cast<double>(nodes - 1) / static_cast<double>(nodes);
      const double least =
          kind == CollectiveKind::all_to_all ? out_of_a_node / nccl_nic : out_of_a_node / (8 * nccl_nic);
      CHECK(best_of(group, kind, bytes).seconds >= least);
    }
  }
}

TEST_CASE("without NVLink there is no LL128 and no reduction in the switch", "[nccl]") {
  NcclGroup pcie = h100(1);
  pcie.has_nvlink = false;
  const auto ways = nccl_ways(pcie, CollectiveKind::all_reduce, 1 << 20);
  CHECK(std::none_of(ways.begin(), ways.end(), [](const CollectiveTime& one) {
    return one.protocol == Protocol::ll128 || one.algorithm == CollectiveAlgorithm::nvls;
  }));
}
