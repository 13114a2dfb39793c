#include "sim/plan/impl/loads.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

struct TestBin {
  double load = never;
  double used = never;
};

// The same by looking at every bin.
std::size_t least_of(const std::vector<TestBin>& bins, const LoadQuery& query) {
  std::size_t best = LoadTree::none;
  double least = never;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double load = std::max(query.floor, bins[i].load + query.more);
    if (bins[i].used > query.most_used || load >= least) continue;
    least = load;
    best = i;
  }
  return best;
}

TEST_CASE("a load tree without an open bin finds none", "[plan][load_tree]") {
  CHECK(LoadTree(0).least() == LoadTree::none);
  CHECK(LoadTree(5).least() == LoadTree::none);
}

TEST_CASE("a load tree finds the first of the least loaded bins that have room", "[plan][load_tree]") {
  LoadTree tree(4);
  tree.set(1, 2, 10);
  tree.set(2, 1, 20);
  tree.set(3, 1, 5);
  CHECK(tree.least() == 2u);
  CHECK(tree.least({.most_used = 19}) == 3u);
  CHECK(tree.least({.most_used = 4}) == LoadTree::none);
  CHECK(tree.least({.more = 3, .floor = 5}) == 1u);  // all end at 5
  CHECK(tree.least({.more = 3, .floor = 4.5}) == 2u);
}

TEST_CASE("a load tree finds what looking at every bin finds", "[plan][load_tree]") {
  const std::uint64_t seed = GENERATE(range(1, 9));
  CAPTURE(seed);
  RandomStream random(seed, "load tree");
  std::vector<TestBin> bins(1 + random.below(40));
  LoadTree tree(bins.size());
  for (int step = 0; step < 500; ++step) {
    const std::size_t bin = random.below(bins.size());
    bins[bin] = {double(random.below(8)), double(random.below(8))};  // few values: many are equal
    tree.set(bin, bins[bin].load, bins[bin].used);
    const LoadQuery query{double(random.below(9)) - 1, double(random.below(4)), double(random.below(12))};
    CHECK(tree.least(query) == least_of(bins, query));
    const auto less = [](const TestBin& a, const TestBin& b) { return a.used < b.used; };
    CHECK(tree.emptiest() == std::size_t(std::min_element(bins.begin(), bins.end(), less) - bins.begin()));
  }
}

TEST_CASE("each item is dealt to the first of the bins that have least, whatever they had before", "[plan][loads]") {
  const std::uint64_t seed = GENERATE(range(1, 33));
  CAPTURE(seed);
  RandomStream random(seed, "dealing");
  // Few values: many are equal. Many bins are sorted by another way than few.
  std::vector<double> loads(1 + random.below(seed % 3 == 0 ? 500 : 30));
  for (double& load : loads) load = static_cast<double>(random.below(seed % 2 == 0 ? 100 : 3));
  std::vector<double> costs(random.below(2000));
  for (double& cost : costs) cost = static_cast<double>(random.below(6));
  std::vector<std::size_t> items(costs.size());
  std::iota(items.begin(), items.end(), std::size_t{0});
  std::vector<double> expected_loads = loads;
  std::vector<std::vector<std::size_t>> expected(loads.size());
  for (const std::size_t item : items) {
    const auto least = std::min_element(expected_loads.begin(), expected_loads.end());
    expected[static_cast<std::size_t>(least - expected_loads.begin())].push_back(item);
    *least += costs[item];
  }
  CHECK(deal_to_least_loaded(items, loads, [&](std::size_t item) { return costs[item]; }) == expected);
  CHECK(loads == expected_loads);
}

}  // namespace
}  // namespace hdpsim
