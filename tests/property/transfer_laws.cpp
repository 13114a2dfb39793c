// What follows for transfers from max-min fair rates: conservation, bounds, symmetry. Seeded random links and
// transfers.

#include <set>

#include "sim/network/traffic.h"
#include "sim/network/transfers.h"
#include "tests/support/random_flows.h"
#include "tests/support/seeds.h"
#include "tests/support/water_filling.h"

namespace hdpsim {
namespace {

using tests::Capacities;
using tests::differs;
using tests::for_seeds;
using tests::random_capacities;
using tests::SharedFlow;
using tests::water_filling;

std::vector<Transfer> random_transfers(RandomStream& random, const Capacities& capacities) {
  std::vector<Transfer> transfers(1 + random.below(24));
  const bool equal_sizes = random.below(3) == 0;
  for (Transfer& transfer : transfers) {
    transfer = {tests::random_links(random, capacities.size()), equal_sizes ? 1e9 : 1e9 * (0.01 + random.uniform())};
  }
  return transfers;
}

std::vector<double> ends_of(const Capacities& capacities, const std::vector<Transfer>& transfers) {
  FairShare network(capacities);
  return end_times(network, transfers);
}

// Between two ends all rates stay what they are.
struct Interval {
  double begin = 0;
  double end = 0;
  std::vector<std::size_t> under_way{};
  std::vector<double> rates{};  // of those, by plain filling
};

std::vector<Interval> intervals_of(const Capacities& capacities, const std::vector<Transfer>& transfers,
                                   const std::vector<double>& ends) {
  std::vector<Interval> intervals;
  double begin = 0;
  const std::set<double> instants(ends.begin(), ends.end());
  for (const double end : instants) {
    Interval& interval = intervals.emplace_back(Interval{begin, end});
    std::vector<SharedFlow> flows;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (ends[i] < end) continue;
      interval.under_way.push_back(i);
      flows.push_back({.links = transfers[i].links});
    }
    interval.rates = water_filling(capacities, flows);
    begin = end;
  }
  return intervals;
}

TEST_CASE("a transfer ends when its rates have moved its bytes", "[transfers]") {
  for_seeds("transfers", 1500, [](RandomStream& random) {
    const Capacities capacities = random_capacities(random);
    const std::vector<Transfer> transfers = random_transfers(random, capacities);
    const std::vector<double> ends = ends_of(capacities, transfers);
    std::vector<double> moved(transfers.size());
    for (const Interval& interval : intervals_of(capacities, transfers, ends)) {
      for (std::size_t k = 0; k < interval.under_way.size(); ++k) {
        moved[interval.under_way[k]] += interval.rates[k] * (interval.end - interval.begin);
      }
    }
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      INFO("transfer " << i << " moved " << moved[i] << " of " << transfers[i].bytes << " bytes");
      if (differs(moved[i], transfers[i].bytes)) FAIL();
    }
  });
  SUCCEED();
}

// The links between two halves of a network are a cut; all that crosses it takes at least bytes / rate of the cut,
// which is never more than the same of the slowest of its links. So it is enough to look at links one by one.
TEST_CASE("no link is left by its last byte before all of them can have crossed it", "[transfers]") {
  for_seeds("transfers", 1500, [](RandomStream& random) {
    const Capacities capacities = random_capacities(random);
    const std::vector<Transfer> transfers = random_transfers(random, capacities);
    const std::vector<double> ends = ends_of(capacities, transfers);
    std::vector<double> bytes(capacities.size());
    std::vector<double> last(capacities.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      for (const FairShare::Link link : transfers[i].links) {
        bytes[link] += transfers[i].bytes;
        last[link] = std::max(last[link], ends[i]);
      }
    }
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      INFO("link " << link << ": " << last[link] << " s for " << bytes[link] << " bytes at " << capacities[link]);
      if (!(last[link] >= bytes[link] / capacities[link] * (1 - 1e-12))) FAIL();
    }
  });
  SUCCEED();
}

TEST_CASE("a link that never binds may as well be away", "[transfers]") {
  std::size_t removed = 0;
  for_seeds("transfers", 1500, [&removed](RandomStream& random) {
    const Capacities capacities = random_capacities(random);
    std::vector<Transfer> transfers = random_transfers(random, capacities);
    const std::vector<double> ends = ends_of(capacities, transfers);
    std::vector<double> peak(capacities.size());
    for (const Interval& interval : intervals_of(capacities, transfers, ends)) {
      std::vector<double> load(capacities.size());
      for (std::size_t k = 0; k < interval.under_way.size(); ++k) {
        for (const FairShare::Link link : transfers[interval.under_way[k]].links) load[link] += interval.rates[k];
      }
      for (std::size_t link = 0; link < load.size(); ++link) peak[link] = std::max(peak[link], load[link]);
    }
    for (Transfer& transfer : transfers) {
      removed += std::erase_if(transfer.links, [&](FairShare::Link l) { return peak[l] < 0.999999 * capacities[l]; });
    }
    const std::vector<double> without = ends_of(capacities, transfers);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      INFO("transfer " << i << " ends at " << without[i] << " s, with those links at " << ends[i]);
      if (differs(without[i], ends[i])) FAIL();
    }
  });
  CHECK((removed > tests::seeds(1500).size() / 2 || tests::one_seed()));
}

TEST_CASE("the order of transfers and the numbers of links do not matter", "[transfers]") {
  for_seeds("transfers", 500, [](RandomStream& random) {
    const Capacities capacities = random_capacities(random);
    const std::vector<Transfer> transfers = random_transfers(random, capacities);
    const std::vector<double> ends = ends_of(capacities, transfers);
    const std::size_t last = capacities.size() - 1;
    const Capacities mirrored(capacities.rbegin(), capacities.rend());
    std::vector<Transfer> reversed(transfers.rbegin(), transfers.rend());
    for (Transfer& transfer : reversed) {
      for (FairShare::Link& link : transfer.links) link = static_cast<FairShare::Link>(last - link);
    }
    const std::vector<double> same = ends_of(mirrored, reversed);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      INFO("transfer " << i);
      if (differs(same[ends.size() - 1 - i], ends[i])) FAIL();
    }
  });
  SUCCEED();
}

TEST_CASE("where all nodes are alike and do the same, all are served the same", "[symmetry]") {
  constexpr std::int64_t nodes = 48;
  for (const std::int64_t shift : {1, 5, 12, 23}) {
    for (const bool is_torus : {false, true}) {
      ClusterSpec cluster;
      cluster.devices = nodes;
      cluster.nic = 25_GBps;
      cluster.tiers = {{.name = "leaf", .fan_in = nodes, .latency = 1_us}};
      if (is_torus) {
        cluster.tiers.clear();
        cluster.fabric = TorusSpec{.shape = {nodes}, .bandwidth = 10_GBps, .latency = 100_ns};
      }
      std::vector<Message> messages;
      for (std::int64_t i = 0; i < nodes; ++i) {
        messages.push_back(
            {DeviceId(static_cast<std::size_t>(i)), DeviceId(static_cast<std::size_t>((i + shift) % nodes)), 1e9});
      }
      const std::vector<double> arrivals = arrival_times(ClusterLinks(cluster, {}), messages);
      CAPTURE(shift, is_torus);
      // Over a torus, every link carries the messages of `shift` nodes.
      const double rate = is_torus ? std::min(25e9, 10e9 / static_cast<double>(shift)) : 25e9;
      CHECK(arrivals.front() == Approx(1e9 / rate).epsilon(1e-4));
      for (const double arrival : arrivals) CHECK_FALSE(differs(arrival, arrivals.front(), 1e-14));
    }
  }
}

}  // namespace
}  // namespace hdpsim
