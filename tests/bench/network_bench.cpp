// Fair sharing: routes and ends of many flows that are coupled through the links of a fabric. Where SimGrid is
// installed, it simulates the same messages: simgrid_ms, and times_simgrid, the ratio to our median; both of processor
// time.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "sim/network/transfers.h"
#include "tests/support/network_cases.h"
#ifdef HDPSIM_WITH_SIMGRID
#include "tests/oracle/simgrid.h"
#endif

namespace hdpsim {
namespace {

using tests::fat_tree;
using tests::pattern;
using tests::permutations_of_distinct_sizes;
using tests::star;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void add_simgrid(benchmark::State& state, const ClusterLinks& links, const std::vector<Message>& messages,
                 const std::vector<double>& arrivals, double seconds) {
#ifdef HDPSIM_WITH_SIMGRID
  const tests::SimgridReplay replay = tests::replay_in_simgrid(simgrid_traffic(links, messages, arrivals));
  state.counters["simgrid_ms"] = 1e3 * replay.seconds;
  state.counters["times_simgrid"] = replay.seconds / seconds;
#else
  (void)state, (void)links, (void)messages, (void)arrivals, (void)seconds;
#endif
}

enum class Beside { nothing, simgrid };

/// All messages at once, from their routes to their ends.
void run(benchmark::State& state, const ClusterSpec& cluster, const std::vector<Message>& messages, Beside beside) {
  const ClusterLinks links(cluster, {});
  std::vector<double> arrivals;
  std::vector<double> seconds;
  for (auto _ : state) {
    const std::clock_t begin = std::clock();
    arrivals = arrival_times(links, messages);
    seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  state.counters["flows"] = static_cast<double>(messages.size());
  state.counters["median_ms"] = 1e3 * median(seconds);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(messages.size()));
  if (beside == Beside::simgrid) add_simgrid(state, links, messages, arrivals, median(seconds));
}

// Fixed numbers of iterations: SimGrid runs once for all of them.

void ring_over_a_star(benchmark::State& state) {
  run(state, star(12288), pattern("ring", 12288), Beside::simgrid);
}
BENCHMARK(ring_over_a_star)->Iterations(51)->Unit(benchmark::kMillisecond);

void ring_over_a_fat_tree(benchmark::State& state) {
  run(state, fat_tree(16, 32, 24), pattern("ring", 12288), Beside::simgrid);
}
BENCHMARK(ring_over_a_fat_tree)->Iterations(51)->Unit(benchmark::kMillisecond);

void permutation_over_a_fat_tree(benchmark::State& state) {
  run(state, fat_tree(16, 32, 24), pattern("permutation", 12288), Beside::simgrid);
}
BENCHMARK(permutation_over_a_fat_tree)->Iterations(21)->Unit(benchmark::kMillisecond);

void four_permutations_of_1024_hosts(benchmark::State& state) {
  run(state, fat_tree(8, 16, 8), permutations_of_distinct_sizes(4, 1024), Beside::simgrid);
}
BENCHMARK(four_permutations_of_1024_hosts)->Iterations(11)->Unit(benchmark::kMillisecond);

// SimGrid takes minutes.
void four_permutations_of_4096_hosts(benchmark::State& state) {
  run(state, fat_tree(16, 16, 16), permutations_of_distinct_sizes(4, 4096), Beside::nothing);
}
BENCHMARK(four_permutations_of_4096_hosts)->Iterations(3)->Unit(benchmark::kMillisecond);

// Every end changes the rates of all that are left.
void incast_of_distinct_sizes(benchmark::State& state) {
  std::vector<Message> messages = pattern("incast", 1024);
  RandomStream random(1, "incast of distinct sizes");
  for (Message& message : messages)
    message.bytes = tests::mebibyte + static_cast<double>(random.below(std::uint64_t{15} * 1048576));
  run(state, star(1024), messages, Beside::simgrid);
}
BENCHMARK(incast_of_distinct_sizes)->Iterations(11)->Unit(benchmark::kMillisecond);

// What links that never bind cost. The fabric leaves out those of which it can be sure, such as the uplinks of a fat
// tree whose switches spread every message over all of them.
void ring_over_links_that_cannot_bind(benchmark::State& state) {
  ClusterSpec cluster = fat_tree(16, 32, 24);
  cluster.routing.policy = Routing::Policy::adaptive;
  run(state, cluster, pattern("ring", 12288), Beside::nothing);
}
BENCHMARK(ring_over_links_that_cannot_bind)->Iterations(51)->Unit(benchmark::kMillisecond);

// The solver alone: every flow over its two NICs and so many links of its own that are wider.
void flows_with_wide_links(benchmark::State& state) {
  const auto wide = static_cast<FairShare::Link>(state.range(0));
  constexpr FairShare::Link hosts = 4096;
  std::vector<double> capacities(2 * hosts, 50e9);
  capacities.resize((2 + wide) * hosts, 400e9);
  RandomStream random(1, "wide links");
  std::vector<Transfer> transfers;
  for (const Message& message : permutations_of_distinct_sizes(4, hosts)) {
    const auto from = static_cast<FairShare::Link>(message.from.index());
    Transfer& transfer = transfers.emplace_back(Transfer{{}, message.bytes});
    transfer.links = {from, hosts + static_cast<FairShare::Link>(message.to.index())};
    for (FairShare::Link k = 0; k < wide; ++k) transfer.links.push_back((2 + k) * hosts + from);
  }
  for (auto _ : state) {
    FairShare network(capacities);
    benchmark::DoNotOptimize(end_times(network, transfers));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(transfers.size()));
}
BENCHMARK(flows_with_wide_links)->Arg(0)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);

// A ring of 32 hosts that sends and pauses, sharing oversubscribed switches with a permutation that never ends: what a
// training job's layer costs next to background traffic.
void ring_next_to_a_permutation(benchmark::State& state) {
  const std::int64_t hosts = state.range(0);
  constexpr std::int64_t ranks = 32;
  ClusterSpec cluster = fat_tree(16, 8, hosts / 128);
  cluster.routing.policy = Routing::Policy::adaptive;
  cluster.tiers[0].oversubscription = 4;
  cluster.tiers[1].oversubscription = 2;
  const ClusterLinks links(cluster, {});
  const auto loads = [](const Route& route) {
    std::vector<FairShare::Load> all;
    for (const auto& [link, share] : route.binding_links()) {
      all.push_back({static_cast<FairShare::Link>(link.index()), share});
    }
    return all;
  };
  constexpr double no_cap = std::numeric_limits<double>::infinity();
  FairShare network = idle_network(links);
  for (const Message& message : pattern("permutation", hosts)) {
    network.add_coupled(loads(links.route(message.from, message.to)), no_cap);
  }
  std::vector<std::vector<FairShare::Load>> hops;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto host = [&](std::int64_t of) { return DeviceId(static_cast<std::size_t>(of % ranks * (hosts / ranks))); };
    hops.push_back(loads(links.route(host(rank), host(rank + 1))));
  }
  std::vector<FairShare::Variable> ring(hops.size());
  std::vector<FairShare::Variable> changed;
  std::size_t changes = 0;
  for (auto _ : state) {
    std::transform(hops.begin(), hops.end(), ring.begin(),
                   [&](const auto& h) { return network.add_coupled(h, no_cap); });
    network.take_changed(changed);
    changes += changed.size();
    for (const FairShare::Variable hop : ring) network.remove(hop);
    network.take_changed(changed);
    changes += changed.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(changes));  // rates that changed
  state.SetComplexityN(hosts);
}
BENCHMARK(ring_next_to_a_permutation)
    ->RangeMultiplier(2)
    ->Range(512, 4096)
    ->Unit(benchmark::kMicrosecond)
    ->Complexity();

}  // namespace
}  // namespace hdpsim
