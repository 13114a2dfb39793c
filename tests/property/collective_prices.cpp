// What a collective costs: never less for more bytes, never more on faster links or with shorter latencies. Random
// clusters, profiles and sizes, all kinds.

#include <cmath>

#include "sim/cluster/device_facts.h"
#include "sim/network/collective_model.h"
#include "tests/support/random_clusters.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

using tests::FabricKind;
using tests::for_seeds;
using tests::one_of;

/// A line from which its small messages may be far off, as published ones are.
CollectiveRate random_rate(RandomStream& random, Bandwidth line, double most) {
  return {.latency = (100_us).scaled(random.uniform()),
          .step_latency = (15_us).scaled(random.uniform()),
          .bandwidth = line.scaled(0.3 + (most - 0.3) * random.uniform()),
          .line_rate = line,
          .source = "random"};
}

LinkProfile random_link_profile(RandomStream& random, Bandwidth line, bool reduces_in_switches) {
  LinkProfile link;
  const auto maybe = [&](std::optional<CollectiveRate>& rate, double most) {
    if (random.below(4) > 0) rate = random_rate(random, line, most);
  };
  if (random.below(4) > 0) {
    link.send_recv =
        SendRecvRate{.latency = 10_us, .bandwidth = line.scaled(0.7), .line_rate = line, .source = "random"};
  }
  maybe(link.all_gather, 1);
  maybe(link.reduce_scatter, 1);
  maybe(link.all_reduce, reduces_in_switches ? 1.2 : 1);
  maybe(link.all_to_all, 1);
  return link;
}

MessageFit random_curve(RandomStream& random, LinkKind link, std::int64_t ranks) {
  return {
      .link = link,
      .kind = MessageKind::all_gather,
      .ranks = ranks,
      .lines = {{.latency = (60_us).scaled(random.uniform()), .bandwidth = 1_GBps * one_of(random, {10, 100, 300})}},
      .curve = {},
      .least = 64_KiB,
      .most = 4_MiB,
      .quality = {}};
}

struct PricedCollective {
  ClusterSpec cluster;
  DeviceProfile profile;
  DeviceSets sets;
};

PricedCollective random_collective(RandomStream& random) {
  PricedCollective one;
  const std::int64_t nodes = one_of(random, {1, 1, 2, 3, 8});
  const FabricKind kind = nodes == 1 ? FabricKind::tiers : tests::fabric_kinds[random.below(5)];
  one.cluster = random_cluster(nodes, kind, random);
  one.cluster.device = "any";
  one.cluster.compute_capability = static_cast<int>(one_of(random, {80, 90, 100, unknown_capability}));
  one.cluster.cpu = random.below(2) == 0 ? HostCpu::intel : HostCpu::amd;
  one.cluster.in_network_reduction = random.below(4) == 0;
  if (one.cluster.devices == 1) one.cluster.devices = one.cluster.devices_per_node = one.cluster.nics_per_node = 4;
  const std::int64_t ranks =
      random.below(2) == 0 ? one.cluster.devices : std::min<std::int64_t>(2, one.cluster.devices);
  one.sets = {consecutive_devices(0, ranks)};
  if (random.below(4) > 0) {
    one.profile.nvlink = random_link_profile(random, 450_GBps, true);
    one.profile.network = random_link_profile(random, 50_GBps, false);
  }
  if (random.below(4) == 0) {
    one.profile.provenance.device = "any";
    const LinkKind link = nodes > 1 && ranks > one.cluster.devices_per_node ? LinkKind::network : LinkKind::nvlink;
    one.profile.fits.messages = {random_curve(random, link, ranks)};
  }
  return one;
}

Duration price_of(const PricedCollective& one, CollectiveKind kind, Bytes bytes) {
  const ClusterLinks links(one.cluster, {});
  return CollectiveModel(links, one.profile, one.sets).estimate(kind, bytes).time;
}

Bytes random_bytes(RandomStream& random) {
  return Bytes(static_cast<std::int64_t>(std::exp2(33 * random.uniform())));
}

/// One way of making the cluster faster.
void make_faster(ClusterSpec& cluster, RandomStream& random) {
  const double factor = 1 + 3 * random.uniform();
  switch (random.below(5)) {
    case 0:
      cluster.nvlink = cluster.nvlink.scaled(factor);
      return;
    case 1:
      cluster.nic = cluster.nic.scaled(factor);
      return;
    case 2:
      cluster.pcie = cluster.pcie.scaled(factor);
      return;
    case 3:
      if (cluster.routing.policy == Routing::Policy::ecmp) return;  // another number of uplinks is another hash
      for (SwitchTier& tier : cluster.tiers) tier.oversubscription = std::max(1.0, tier.oversubscription / factor);
      return;
    case 4:
      cluster.nvlink_latency = {};
      for (SwitchTier& tier : cluster.tiers) tier.latency = {};
      return;
  }
}

// A picosecond or two of rounding.
bool is_shorter(Duration a, Duration b) {
  return a.seconds() < b.seconds() * (1 - 1e-9) - 2e-12;
}

TEST_CASE("a larger collective never takes less time", "[prices]") {
  for_seeds("prices", 300, [](RandomStream& random) {
    const PricedCollective one = random_collective(random);
    for (std::size_t kind = 0; kind < collective_kinds; ++kind) {
      const auto which = static_cast<CollectiveKind>(kind);
      // NCCL turns to faster protocols of a broadcast too late: it leaves out how long a ring takes to fill.
      if (which == CollectiveKind::broadcast) continue;
      const ClusterLinks links(one.cluster, {});
      const CollectiveModel model(links, one.profile, one.sets);
      Bytes before(1);
      for (double bytes = 1; bytes < 1e10; bytes *= 1 + random.uniform()) {
        const Bytes now(static_cast<std::int64_t>(std::ceil(bytes)));
        INFO(collective_name(which) << ": " << before.count() << " B take "
                                    << model.estimate(which, before).time.seconds() << " s, " << now.count() << " B "
                                    << model.estimate(which, now).time.seconds() << " s");
        if (is_shorter(model.estimate(which, now).time, model.estimate(which, before).time)) FAIL();
        before = now;
      }
    }
  });
  SUCCEED();
}

TEST_CASE("no collective takes longer on a faster link or with shorter latencies", "[prices]") {
  for_seeds("links", 600, [](RandomStream& random) {
    const PricedCollective slow = random_collective(random);
    PricedCollective fast = slow;
    make_faster(fast.cluster, random);
    for (std::size_t kind = 0; kind < collective_kinds; ++kind) {
      const auto which = static_cast<CollectiveKind>(kind);
      const Bytes bytes = random_bytes(random);
      const Duration before = price_of(slow, which, bytes);
      const Duration after = price_of(fast, which, bytes);
      INFO(collective_name(which) << " of " << bytes.count() << " B: " << before.seconds() << " s, then "
                                  << after.seconds() << " s");
      if (is_shorter(before, after)) FAIL();
    }
  });
  SUCCEED();
}

}  // namespace
}  // namespace hdpsim
