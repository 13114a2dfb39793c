#include "sim/network/nccl_model.h"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

constexpr double nvlink = 450e9;
constexpr double nic = 50e9;

NcclGroup h100(std::int64_t nodes) {
  return {.ranks = 8 * nodes, .nodes = nodes, .nvlink_bytes_per_s = nvlink, .network_bytes_per_s = nic};
}

CollectiveTime way(const NcclGroup& group, CollectiveKind kind, std::int64_t bytes, CollectiveAlgorithm algorithm,
                   Protocol protocol) {
  for (const CollectiveTime& one : NcclModel(group).ways(kind, bytes)) {
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
        Approx((8.4 + 28 * 3.4 + 3 * 14.0) * 1e-6 + 31.0 / 32 * static_cast<double>(bytes) / (8 * nic)));
}

TEST_CASE("small messages go by LL, large ones by the protocol that wastes least", "[nccl]") {
  const NcclModel model(h100(1));
  CHECK(model.best(CollectiveKind::all_reduce, 1024).protocol == Protocol::ll);
  CHECK(model.best(CollectiveKind::all_gather, std::int64_t{1} << 33).protocol == Protocol::simple);
  CHECK(model.best(CollectiveKind::all_reduce, std::int64_t{1} << 33).algorithm == CollectiveAlgorithm::nvls);
}

TEST_CASE("trees win many nodes over at small sizes: their latency grows with the logarithm", "[nccl]") {
  const NcclModel model(h100(128));
  CHECK(model.best(CollectiveKind::all_reduce, 8).algorithm == CollectiveAlgorithm::tree);
  const double at_128 = model.best(CollectiveKind::all_reduce, 8).seconds;
  const double at_1024 = NcclModel(h100(1024)).best(CollectiveKind::all_reduce, 8).seconds;
  CHECK(at_1024 - at_128 == Approx(2 * 3 * 5.0e-6));  // three more levels, up and down
}

TEST_CASE("the best way is the lower envelope of all ways, and more bytes never take less time by the ring", "[nccl]") {
  for (const std::int64_t nodes : {1, 2, 16, 512}) {
    const NcclModel model(h100(nodes));
    double before = 0;
    for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 33; bytes *= 2) {
      CAPTURE(nodes, bytes);
      const auto ways = model.ways(CollectiveKind::all_reduce, bytes);
      const double best = model.best(CollectiveKind::all_reduce, bytes).seconds;
      for (const CollectiveTime& one : ways) CHECK(best <= one.seconds);
      const double gather = model.best(CollectiveKind::all_gather, bytes).seconds;
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
      const double least = kind == CollectiveKind::all_to_all ? out_of_a_node / nic : out_of_a_node / (8 * nic);
      CHECK(NcclModel(group).best(kind, bytes).seconds >= least);
    }
  }
}

TEST_CASE("without NVLink there is no LL128 and no reduction in the switch", "[nccl]") {
  NcclGroup pcie = h100(1);
  pcie.has_nvlink = false;
  const auto ways = NcclModel(pcie).ways(CollectiveKind::all_reduce, 1 << 20);
  CHECK(std::none_of(ways.begin(), ways.end(), [](const CollectiveTime& one) {
    return one.protocol == Protocol::ll128 || one.algorithm == CollectiveAlgorithm::nvls;
  }));
}
