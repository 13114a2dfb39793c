// Fair sharing: many flows that are coupled through the links of a fat tree, each with its own end.

#include <benchmark/benchmark.h>

#include <algorithm>

#include "sim/network/transfers.h"
#include "tests/support/fat_tree.h"

namespace hdpsim {
namespace {

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
    const std::vector<double> ends = end_times(network, transfers);
    seconds = *std::max_element(ends.begin(), ends.end());
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
