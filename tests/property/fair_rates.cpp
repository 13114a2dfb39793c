// Flows over any links get max-min fair rates, whatever has come, gone and changed before. Seeded random links and
// flows, and random clusters of every fabric.

#include <string>

#include "sim/network/fair_share_network.h"
#include "tests/support/checked_network.h"
#include "tests/support/random_flows.h"
#include "tests/support/water_filling.h"

namespace hdpsim {
namespace {

using tests::Capacities;
using tests::differs;
using tests::for_seeds;
using tests::SharedFlow;
using tests::water_filling;
using tests::why_unfair;

SharedFlow random_flow(RandomStream& random, const Capacities& capacities) {
  SharedFlow flow{.links = tests::random_links(random, capacities.size())};
  if (random.below(3) == 0) flow.cap = capacities[flow.links.front()] * (0.02 + 1.2 * random.uniform());
  if (random.below(3) == 0) flow.weight = static_cast<double>(1 + random.below(4));
  if (random.below(4) == 0) {
    flow.flows = static_cast<double>(1 + random.below(5));
  } else if (random.below(3) == 0) {  // coupled flows: another number of them on each link
    for (std::size_t hop = 0; hop < flow.links.size(); ++hop) {
      flow.shares.push_back(random.below(2) == 0 ? static_cast<double>(1 + random.below(8))
                                                 : 0.1 + 3 * random.uniform());
    }
  }
  return flow;
}

// A solver that repairs its rates, and the flows that it has.
struct Repaired {
  explicit Repaired(Capacities all) : capacities(std::move(all)), solver(capacities) {}

  void change(RandomStream& random) {
    const std::size_t any = flows.empty() ? 0 : random.below(flows.size());
    switch (flows.empty() ? 0 : random.below(9)) {
      case 6:
      case 7:
      case 8:
        return remove(any);
      default:
        return add(random_flow(random, capacities));
    }
  }
  void add(const SharedFlow& flow) {
    flows.push_back(flow);
    if (flow.shares.empty()) {
      variables.push_back(solver.add(flow.links, flow.cap, flow.weight, static_cast<std::int64_t>(flow.flows)));
      return;
    }
    std::vector<FairShare::Load> loads;
    for (std::size_t hop = 0; hop < flow.links.size(); ++hop) loads.push_back({flow.links[hop], flow.shares[hop]});
    variables.push_back(solver.add_coupled(loads, flow.cap, flow.weight));
  }
  void remove(std::size_t which) {
    solver.remove(variables[which]);
    flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(which));
    variables.erase(variables.begin() + static_cast<std::ptrdiff_t>(which));
  }
  std::vector<double> rates() {
    std::vector<double> all;
    for (const FairShare::Variable variable : variables) all.push_back(solver.rate(variable));
    return all;
  }

  Capacities capacities;
  FairShare solver;
  std::vector<SharedFlow> flows;
  std::vector<FairShare::Variable> variables;
};

TEST_CASE("rates after any changes are those of plain filling, and max-min fair", "[fair rates]") {
  for_seeds("fair rates", 3000, [](RandomStream& random) {
    Repaired repaired(tests::random_capacities(random));
    for (int change = 0; change < 30; ++change) {
      repaired.change(random);
      if (random.below(3) == 0) continue;  // several changes are repaired together
      const std::vector<double> rates = repaired.rates();
      const std::vector<double> expected = water_filling(repaired.capacities, repaired.flows);
      for (std::size_t i = 0; i < rates.size(); ++i) {
        INFO("change " << change << ", flow " << i << ": " << rates[i] << " B/s, should be " << expected[i]);
        if (differs(rates[i], expected[i])) FAIL();
      }
      const std::string problem = why_unfair(repaired.capacities, repaired.flows, rates);
      if (!problem.empty()) FAIL(problem);
    }
  });
  SUCCEED();
}

TEST_CASE("a rate that is not fair is found", "[fair rates]") {
  const Capacities capacities{10, 4};
  const std::vector<SharedFlow> flows{{.links = {0}}, {.links = {0, 1}}, {.links = {1}, .cap = 1}};
  CHECK(water_filling(capacities, flows) == std::vector<double>{7, 3, 1});
  CHECK(why_unfair(capacities, flows, {7, 3, 1}).empty());
  CHECK(why_unfair(capacities, flows, {7.1, 3, 1}) == "link 0 carries 10.1 of 10 B/s");
  CHECK(why_unfair(capacities, flows, {6.9, 3, 1}) == "flow 0 has 6.9 B/s and nothing holds it back");
  CHECK(why_unfair(capacities, flows, {7.5, 2.5, 1}) == "flow 1 has 2.5 B/s and nothing holds it back");
  CHECK(why_unfair(capacities, flows, {7.5, 2.5, 1.5}) == "flow 2 has 1.5 B/s, its cap is 1");
}

TEST_CASE("on any cluster flows that come and go get fair rates, and every change is told", "[clusters]") {
  for_seeds("clusters", 200, [](RandomStream& random) {
    const tests::FabricKind kind = tests::fabric_kinds[random.below(std::size(tests::fabric_kinds))];
    const ClusterSpec cluster = tests::random_cluster(tests::one_of(random, {2, 4, 8, 16}), kind, random);
    INFO(tests::name_of(kind) << " of " << cluster.nodes() << " nodes of " << cluster.devices_per_node);
    const auto network = make_fair_share_network(cluster);
    tests::CheckedNetwork checked(*network);
    std::vector<FlowId> flows;
    std::vector<FlowId> changed;
    for (int change = 0; change < 60; ++change) {
      if (!flows.empty() && random.below(3) == 0) {
        const std::size_t gone = random.below(flows.size());
        checked.remove(flows[gone]);
        flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(gone));
      } else {
        const auto devices = static_cast<std::size_t>(cluster.devices);
        const std::size_t from = random.below(devices);
        const std::size_t to = (from + 1 + random.below(devices - 1)) % devices;
        const Route route = checked.route(DeviceId(from), DeviceId(to));
        const double weight = random.below(3) == 0 ? 0.125 : 1;
        flows.push_back(checked.add(route, route.alone.scaled(0.1 + 1.5 * random.uniform()), weight));
      }
      REQUIRE_NOTHROW(checked.take_changed(changed));
    }
    REQUIRE(checked.checks() > 30);
  });
}

}  // namespace
}  // namespace hdpsim
