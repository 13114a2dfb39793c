#include "sim/network/traffic.h"

#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

constexpr double rail_nic = 25e9;
constexpr double gigabyte = 1e9;

ClusterSpec at_once(ClusterSpec spec) {
  spec.nvlink_latency = {};
  for (SwitchTier& tier : spec.tiers) tier.latency = {};
  return spec;
}

Traffic traffic(TrafficPattern pattern, std::int64_t devices) {
  return {.pattern = pattern, .first = 0, .devices = devices, .bytes = gigabyte, .seed = 1};
}

}  // namespace

TEST_CASE("an incast takes as long as its bytes over the receiver's NIC", "[traffic]") {
  const ClusterLinks links(at_once(rail_cluster(4)), {});
  const TrafficResult result = simulate_traffic(links, traffic(TrafficPattern::incast, 32), {});
  CHECK(result.messages == 31);
  CHECK(result.last_s ==
        Approx(24 * gigabyte / rail_nic));  // 24 senders in other nodes; NVLink is faster for the 7 others
  CHECK(result.first_s < result.last_s);
}

TEST_CASE("the two halves of a full fabric exchange at the rate of their NICs", "[traffic]") {
  const ClusterLinks links(at_once(three_tiers(16, 1, 1)), {});
  const TrafficResult result = simulate_traffic(links, traffic(TrafficPattern::bisection, 128), {});
  CHECK(result.first_s == Approx(gigabyte / rail_nic));
  CHECK(result.last_s == Approx(gigabyte / rail_nic));
}

TEST_CASE("oversubscription slows the bisection by its factor and a ring only where it leaves the switch",
          "[traffic]") {
  const ClusterLinks links(at_once(three_tiers(16, 4, 1)), {});
  CHECK(simulate_traffic(links, traffic(TrafficPattern::bisection, 128), {}).last_s == Approx(4 * gigabyte / rail_nic));
  CHECK(simulate_traffic(links, traffic(TrafficPattern::ring, 128), {}).last_s == Approx(gigabyte / rail_nic));
}

TEST_CASE("the bisection rate is what the NICs carry, divided by the oversubscription", "[traffic]") {
  CHECK(bisection_rate(ClusterLinks(three_tiers(16, 1, 1), {})) == Approx(128 * rail_nic));
  CHECK(bisection_rate(ClusterLinks(three_tiers(16, 4, 1), {})) == Approx(128 * rail_nic / 4));
  CHECK(bisection_rate(ClusterLinks(rail_cluster(1), {})) == Approx(8 * 300e9));  // over NVLink
}

TEST_CASE("a permutation sends once to everybody", "[traffic]") {
  const ClusterLinks links(rail_cluster(8), {});
  const TrafficResult result = simulate_traffic(links, traffic(TrafficPattern::permutation, 64), {});
  CHECK(result.messages == 64);
  std::int64_t nvlink_in = 0;
  std::int64_t nic_in = 0;
  for (std::size_t link = 0; link < links.count(); ++link) {
    const std::string name = links.name(LinkId(link));
    if (name.ends_with(" in"))
      (name.find("nvlink") != std::string::npos ? nvlink_in : nic_in) += result.links.bytes[link].count();
  }
  CHECK(nvlink_in + nic_in == 64 * static_cast<std::int64_t>(gigabyte));
  CHECK(nic_in > nvlink_in);  // 7 of 63 others are in the same node
}

TEST_CASE("an all-to-all of one node is bound by NVLink, of several by the NICs", "[traffic]") {
  const ClusterLinks links(at_once(rail_cluster(4)), {});
  CHECK(simulate_traffic(links, traffic(TrafficPattern::all_to_all, 8), {}).last_s == Approx(7 * gigabyte / 300e9));
  const TrafficResult result = simulate_traffic(links, traffic(TrafficPattern::all_to_all, 32), {});
  CHECK(result.messages == 32 * 31);
  CHECK(result.last_s == Approx(24 * gigabyte / rail_nic));  // each device's data for 24 devices elsewhere, by its NIC
}

TEST_CASE("traffic that goes on for ever takes half of what it shares", "[traffic]") {
  const ClusterLinks links(at_once(three_tiers(16, 4, 1)), {});
  const Traffic first_half{.pattern = TrafficPattern::ring, .first = 0, .devices = 64, .bytes = gigabyte, .seed = 1};
  const Traffic other{.pattern = TrafficPattern::ring, .first = 0, .devices = 64, .bytes = 0, .seed = 1};
  const double alone = simulate_traffic(links, first_half, {}).last_s;
  CHECK(simulate_traffic(links, first_half, {other}).last_s == Approx(2 * alone));
}

TEST_CASE("an all-to-all beside other traffic gets its fair share of each link", "[traffic]") {
  const ClusterLinks links(at_once(rail_cluster(4)), {});
  // Devices 7 and 8, of nodes 0 and 1, send to each other. Their NICs have three flows of the all-to-all, one for each
  // other node, and that message: the all-to-all keeps three quarters.
  const Traffic exchange = traffic(TrafficPattern::all_to_all, 32);
  const double alone = simulate_traffic(links, exchange, {}).last_s;
  const Traffic ring{.pattern = TrafficPattern::ring, .first = 7, .devices = 2, .bytes = 0, .seed = 1};
  CHECK(simulate_traffic(links, exchange, {ring}).last_s == Approx(alone * 4 / 3));
  // And two at once take twice as long.
  CHECK(simulate_traffic(links, exchange, {exchange}).last_s == Approx(2 * alone));
}
