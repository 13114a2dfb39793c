// Fair sharing: many flows that are coupled through the links of a fat tree, each with its own end.

#include <benchmark/benchmark.h>

#include <queue>

#include "tests/support/fat_tree.h"

namespace hdpsim {
namespace {

struct Transfer {
  std::vector<FairShare::Link> route;
  double bytes;
};

/// Seconds until the last of them has arrived. One event per end of a flow; a flow whose rate changes gets a new end.
double drain(FairShare& network, const std::vector<Transfer>& transfers) {
  struct State {
    double left;
    double since = 0;
    double rate = 0;
    std::uint32_t version = 0;
  };
  struct End {
    double time;
    FairShare::Variable flow;
    std::uint32_t version;
    bool operator<(const End& other) const { return time > other.time; }
  };
  std::vector<State> states;
  for (const Transfer& transfer : transfers) {
    network.add(transfer.route, 1e30);
    states.push_back({transfer.bytes});
  }
  std::priority_queue<End> ends;
  std::vector<FairShare::Variable> changed;
  double now = 0;
  for (std::size_t left = transfers.size(); left > 0; --left) {
    network.take_changed(changed);
    for (const FairShare::Variable flow : changed) {
      State& state = states[flow];
      state.left -= state.rate * (now - state.since);
      state.since = now;
      state.rate = network.rate(flow);
      ends.push({now + state.left / state.rate, flow, ++state.version});
    }
    while (ends.top().version != states[ends.top().flow].version) ends.pop();
    now = ends.top().time;
    network.remove(ends.top().flow);
    ++states[ends.top().flow].version;
    ends.pop();
  }
  return now;
}

std::vector<Transfer> permutations(const tests::FatTree& tree, int count, bool equal_sizes) {
  RandomStream random(1, "permutations");
  std::vector<Transfer> transfers;
  for (int i = 0; i < count; ++i) {
    const std::vector<std::uint32_t> partner = tests::random_partners(tree.hosts(), random);
    for (std::uint32_t host = 0; host < tree.hosts(); ++host) {
      const double mebibytes = equal_sizes ? 8 : 1 + 15 * random.uniform();
      transfers.push_back({tree.route(host, partner[host], random), mebibytes * 1048576});
    }
  }
  return transfers;
}

void run(benchmark::State& state, int count, bool equal_sizes) {
  const tests::FatTree tree(static_cast<std::uint32_t>(state.range(0)));
  const std::vector<Transfer> transfers = permutations(tree, count, equal_sizes);
  double seconds = 0;
  for (auto _ : state) {
    FairShare network(std::vector<double>(tree.links(), 50e9));
    seconds = drain(network, transfers);
    benchmark::DoNotOptimize(seconds);
  }
  state.counters["hosts"] = tree.hosts();
  state.counters["flows"] = static_cast<double>(transfers.size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(transfers.size()));
}

void four_permutations_of_distinct_sizes(benchmark::State& state) {
  run(state, 4, false);
}
BENCHMARK(four_permutations_of_distinct_sizes)->Arg(8)->Arg(16)->Arg(26)->Unit(benchmark::kMillisecond);

void one_permutation_of_equal_sizes(benchmark::State& state) {
  run(state, 1, true);
}
BENCHMARK(one_permutation_of_equal_sizes)->Arg(16)->Arg(36)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
