#include "sim/network/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/base/random.h"
#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

constexpr double no_cap = std::numeric_limits<double>::infinity();

struct Flow {
  std::vector<FairShare::Link> links;
  double cap = no_cap;
  double weight = 1;
  double flows = 1;
  std::vector<double> coupled = {};  ///< How many flows cross each link; empty: one.

  /// What the flow puts on a link at rate 1; 0 if it does not cross it.
  [[nodiscard]] double on(std::size_t link) const {
    const auto found = std::find(links.begin(), links.end(), link);
    if (found == links.end()) return 0;
    return flows * (coupled.empty() ? 1 : coupled[static_cast<std::size_t>(found - links.begin())]);
  }
};

/// Progressive filling as the textbook has it: in every round look at all links and caps, raise all open levels to the
/// lowest limit, freeze whom it holds. O(flows x links) a round, and as many rounds as flows.
std::vector<double> plain_filling(const std::vector<double>& capacities, const std::vector<Flow>& flows) {
  std::vector<double> rates(flows.size(), -1);
  const auto limit = [&](std::size_t link) {
    double left = capacities[link];
    double weight = 0;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= 0) {
        left -= rates[f] * flows[f].on(link);
      } else {
        weight += flows[f].weight * flows[f].on(link);
      }
    }
    return weight > 0 ? std::max(0.0, left) / weight : no_cap;
  };
  for (;;) {
    std::vector<double> limits(capacities.size());
    for (std::size_t link = 0; link < capacities.size(); ++link) limits[link] = limit(link);
    double lowest = no_cap;
    std::size_t held = flows.size();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= 0) continue;
      double level = flows[f].cap / flows[f].weight;
      for (const FairShare::Link link : flows[f].links) level = std::min(level, limits[link]);
      if (held == flows.size() || level < lowest) {
        lowest = level;
        held = f;
      }
    }
    if (held == flows.size()) return rates;
    rates[held] = lowest * flows[held].weight;
  }
}

/// Chooses what happens in a random test.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : stream_(seed, "fair-share-test") {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(stream_.below(n)); }
  double between(double low, double high) { return low + (high - low) * stream_.uniform(); }

 private:
  RandomStream stream_;
};

Flow random_flow(Dice& dice, std::size_t links) {
  Flow flow;
  std::set<FairShare::Link> chosen;
  const std::size_t hops = 1 + dice.below(std::min<std::size_t>(links, 5));
  while (chosen.size() < hops) chosen.insert(static_cast<FairShare::Link>(dice.below(links)));
  flow.links.assign(chosen.begin(), chosen.end());
  if (dice.below(3) == 0) flow.cap = dice.between(0.05, 3);
  if (dice.below(3) == 0) flow.weight = static_cast<double>(1 + dice.below(4));
  if (dice.below(3) == 0) {
    for (std::size_t hop = 0; hop < hops; ++hop) {
      flow.coupled.push_back(dice.below(2) == 0 ? static_cast<double>(1 + dice.below(8)) : dice.between(0.1, 3));
    }
  } else if (dice.below(4) == 0) {
    flow.flows = static_cast<double>(1 + dice.below(5));
  }
  return flow;
}

FairShare::Variable add(FairShare& network, const Flow& flow) {
  if (flow.coupled.empty()) {
    return network.add(flow.links, flow.cap, flow.weight, static_cast<std::int64_t>(flow.flows));
  }
  std::vector<FairShare::Load> loads;
  for (std::size_t hop = 0; hop < flow.links.size(); ++hop) loads.push_back({flow.links[hop], flow.coupled[hop]});
  return network.add_coupled(loads, flow.cap, flow.weight);
}

}  // namespace

TEST_CASE("three flows on one link get a third each, a fourth elsewhere is not slowed", "[fair share]") {
  FairShare network({9, 5});
  const FairShare::Link shared[] = {0};
  const FairShare::Link other[] = {1};
  for (int i = 0; i < 3; ++i) network.add(shared, no_cap);
  const auto alone = network.add(other, no_cap);
  for (FairShare::Variable flow = 0; flow < 3; ++flow) CHECK(network.rate(flow) == 3);
  CHECK(network.rate(alone) == 5);
}

TEST_CASE("the parking lot: a flow over all links shares each of them with one short flow", "[fair share]") {
  // Links of 10, 6 and 8: the long flow gets half of the narrowest, the others what it leaves.
  FairShare network({10, 6, 8});
  const FairShare::Link all[] = {0, 1, 2};
  const auto long_flow = network.add(all, no_cap);
  FairShare::Variable short_flows[3];
  for (FairShare::Link link = 0; link < 3; ++link) short_flows[link] = network.add({&link, 1}, no_cap);
  CHECK(network.rate(long_flow) == 3);
  CHECK(network.rate(short_flows[0]) == 7);
  CHECK(network.rate(short_flows[1]) == 3);
  CHECK(network.rate(short_flows[2]) == 5);
}

TEST_CASE("the butterfly: what one flow cannot use, because another link holds it, goes to the rest", "[fair share]") {
  // Flow a crosses 0 (of 1) and 2 (of 10); b and c cross 2 alone: a has 1, b and c (10 - 1) / 2.
  FairShare network({1, 4, 10});
  const FairShare::Link narrow[] = {0, 2};
  const FairShare::Link wide[] = {2};
  const auto a = network.add(narrow, no_cap);
  const auto b = network.add(wide, no_cap);
  const auto c = network.add(wide, no_cap);
  CHECK(network.rate(a) == 1);
  CHECK(network.rate(b) == 4.5);
  CHECK(network.rate(c) == 4.5);
}

TEST_CASE("a capped flow leaves the rest of its share to the others", "[fair share]") {
  FairShare network({12});
  const FairShare::Link link[] = {0};
  const auto capped = network.add(link, 2);
  const auto first = network.add(link, no_cap);
  const auto second = network.add(link, no_cap);
  CHECK(network.rate(capped) == 2);
  CHECK(network.rate(first) == 5);
  CHECK(network.rate(second) == 5);
}

TEST_CASE("weights divide a link, and a variable of n flows counts n times", "[fair share]") {
  FairShare network({12});
  const FairShare::Link link[] = {0};
  const auto heavy = network.add(link, no_cap, 3);
  const auto three = network.add(link, no_cap, 1, 3);
  CHECK(network.rate(heavy) == 6);
  CHECK(network.rate(three) == 2);
  network.remove(three);
  const auto nine = network.add(link, no_cap, 1, 9);
  CHECK(network.rate(heavy) == 3);
  CHECK(network.rate(nine) == 1);
}

TEST_CASE("a flow over no link runs at its cap", "[fair share]") {
  FairShare network({1});
  CHECK(network.rate(network.add({}, 7)) == 7);
}

TEST_CASE("a flow that joins a link slows the flows there, and only those", "[fair share]") {
  FairShare network({10, 10});
  const FairShare::Link first[] = {0};
  const FairShare::Link second[] = {1};
  const auto slowed = network.add(first, no_cap);
  const auto other = network.add(second, no_cap);
  std::vector<FairShare::Variable> changed;
  network.take_changed(changed);
  CHECK(changed == std::vector<FairShare::Variable>{slowed, other});
  const auto joined = network.add(first, no_cap);
  CHECK(network.rate(slowed) == 5);
  network.take_changed(changed);
  CHECK(changed == std::vector<FairShare::Variable>{slowed, joined});
}

TEST_CASE("coupled flows all move at the pace of the slowest, and leave what they cannot use", "[fair share]") {
  // Links of 10, 6 and 10; two of the coupled flows cross link 1: 3 each, so link 0 has 10 - 3 left for a flow there.
  FairShare network({10, 6, 10});
  const FairShare::Load loads[] = {{0, 1}, {1, 2}, {2, 0.5}};
  const auto ring = network.add_coupled(loads, no_cap);
  const FairShare::Link first[] = {0};
  const auto other = network.add(first, no_cap);
  CHECK(network.rate(ring) == 3);
  CHECK(network.rate(other) == 7);
  CHECK(network.load(1) == 6);
  CHECK(network.load(2) == 1.5);
  CHECK(network.bottleneck(ring) == 1);
  CHECK(network.bottleneck(other) == 0);
}

TEST_CASE("k coupled flows get as much of a link beside another as k separate ones", "[fair share]") {
  FairShare network({12});
  const FairShare::Load loads[] = {{0, 3}};
  const FairShare::Link link[] = {0};
  const auto three = network.add_coupled(loads, no_cap);
  const auto one = network.add(link, no_cap);
  CHECK(network.rate(three) == 3);
  CHECK(network.rate(one) == 3);
  network.remove(one);
  CHECK(network.rate(three) == 4);
  network.remove(three);
  CHECK(network.rate(network.add_coupled(loads, 1)) == 1);
  CHECK_FALSE(network.bottleneck(0));
}

TEST_CASE("rates repaired after every change are those of plain filling from nothing", "[fair share]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Dice dice(seed);
    INFO("replay: seed " << seed);
    std::vector<double> capacities(1 + dice.below(12));
    for (double& capacity : capacities) capacity = dice.below(2) == 0 ? 1 : dice.between(0.1, 4);
    FairShare network(capacities);
    std::vector<Flow> flows;
    std::vector<FairShare::Variable> ids;
    for (int change = 0; change < 30; ++change) {
      const std::size_t action = dice.below(9);
      if (action < 6 || flows.empty()) {
        flows.push_back(random_flow(dice, capacities.size()));
        ids.push_back(add(network, flows.back()));
      } else {
        const std::size_t gone = dice.below(flows.size());
        network.remove(ids[gone]);
        flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(gone));
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(gone));
      }
      if (dice.below(3) == 0) continue;  // several changes are repaired together
      const std::vector<double> expected = plain_filling(capacities, flows);
      for (std::size_t i = 0; i < flows.size(); ++i) {
        INFO("change " << change << ", flow " << i);
        REQUIRE(std::abs(network.rate(ids[i]) - expected[i]) <= 1e-9 * expected[i]);
      }
      for (FairShare::Link link = 0; link < capacities.size(); ++link) {
        REQUIRE(network.load(link) <= capacities[link] * (1 + 1e-9));
      }
    }
  }
}
