#include "sim/network/profile_collective.h"

#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

NcclGroup group(std::int64_t nodes, std::int64_t in_node) {
  return {.ranks = nodes * in_node, .nodes = nodes, .nvlink_bytes_per_s = 400e9, .network_bytes_per_s = 50e9};
}

CollectiveRate rate(Duration latency, Duration step, Bandwidth bandwidth, Bandwidth line) {
  return {.latency = latency, .step_latency = step, .bandwidth = bandwidth, .line_rate = line, .source = "a test"};
}

DeviceProfile profile() {
  DeviceProfile profile;
  profile.nvlink.emplace();
  profile.network.emplace();
  profile.nvlink->all_gather = rate(20_us, 3_us, 160_GBps, 200_GBps);
  profile.nvlink->send_recv =
      SendRecvRate{.latency = 7_us, .bandwidth = 90_GBps, .line_rate = 100_GBps, .source = "a test"};
  profile.network->all_gather = rate(8_us, 14_us, 45_GBps, 50_GBps);
  return profile;
}

}  // namespace

TEST_CASE("a profile's line keeps its share of the line rate: start, steps of a ring, bytes", "[profiled]") {
  const auto inside = profiled_collective(profile(), group(1, 8), CollectiveKind::all_gather, 1 << 30);
  REQUIRE(inside);
  CHECK(inside->latency_s == Approx(20e-6 + 7 * 3e-6));
  CHECK(inside->seconds == Approx(inside->latency_s + 7.0 / 8 * (1 << 30) / (0.8 * 400e9)));
}

TEST_CASE("over nodes the slower of NVLink and all NICs of a node sets the rate", "[profiled]") {
  const auto over = profiled_collective(profile(), group(4, 2), CollectiveKind::all_gather, 1 << 30);
  REQUIRE(over);
  CHECK(over->latency_s == Approx(8e-6 + 3 * 14e-6 + 3e-6));
  CHECK(over->bytes_per_s == Approx(0.9 * 2 * 50e9 * 8 / 7));
  const auto narrow = profiled_collective(profile(), group(4, 16), CollectiveKind::all_gather, 1 << 30);
  CHECK(narrow->bytes_per_s == Approx(0.8 * 400e9 * 64 / 63));
}

TEST_CASE("what a profile has no line for is left to NCCL's model", "[profiled]") {
  CHECK_FALSE(profiled_collective(profile(), group(1, 8), CollectiveKind::all_reduce, 1 << 20));
  CHECK_FALSE(profiled_collective(profile(), group(1, 8), CollectiveKind::broadcast, 1 << 20));
  CHECK_FALSE(profiled_collective(profile(), group(2, 8), CollectiveKind::send_recv, 1 << 20));
  CHECK_FALSE(profiled_collective(DeviceProfile{}, group(2, 8), CollectiveKind::all_gather, 1 << 20));
  const auto message = profiled_collective(profile(), group(1, 2), CollectiveKind::send_recv, 1 << 20);
  REQUIRE(message);
  CHECK(message->seconds == Approx(7e-6 + (1 << 20) / (0.9 * 400e9)));
}
