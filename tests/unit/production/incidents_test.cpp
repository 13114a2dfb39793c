#include "sim/production/incidents.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/study/study.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

/// A hundred nodes of eight devices of which every second one has the job.
struct Nodes {
  ClusterSpec cluster;
  NodeList nodes;
  Nodes() {
    cluster.devices = 800;
    cluster.devices_per_node = 8;
    std::vector<NodeId> chosen;
    for (std::size_t node = 0; node < 100; node += 2) chosen.emplace_back(node);
    nodes = NodeList(chosen);
  }
};

ProductionOptions options_with(double device_mtbf_s) {
  ProductionOptions options{.time_s = 1e6};
  options.stragglers = Stragglers{.device_mtbf_s = device_mtbf_s, .slowdown = {1.2, 4.8}, .duration_s = {100, 10'000}};
  return options;
}

TEST_CASE("as many incidents are drawn as their rates say, on the nodes of the job alone", "[production]") {
  const Nodes job;
  const FailureModel failures{.node_mtbf_s = 1e5, .checkpoint_s = 1};
  const Incidents drawn = draw_incidents(options_with(4e5), failures, job.nodes, job.cluster);
  // 50 nodes that fail every 1e5 s for 1e6 s: 500, with a deviation of its root; 400 devices: 1000.
  CHECK(std::abs(static_cast<double>(drawn.failures.size()) - 500) < 4 * std::sqrt(500));
  CHECK(std::abs(static_cast<double>(drawn.slow.size()) - 1000) < 4 * std::sqrt(1000));
  std::set<std::int64_t> devices;
  for (const SlowSpell& spell : drawn.slow) {
    CHECK(spell.node == spell.device / 8);
    CHECK(spell.node % 2 == 0);
    CHECK((spell.slowdown >= 1.2 && spell.slowdown <= 4.8));
    CHECK((spell.to_s - spell.from_s >= 100 - 1e-6 && spell.to_s - spell.from_s <= 10'000 + 1e-6));
    devices.insert(spell.device);
  }
  CHECK(devices.size() > 300);  // 400 (1 - exp(-1000 / 400)) = 367 are expected
  CHECK(std::is_sorted(drawn.slow.begin(), drawn.slow.end(),
                       [](const auto& a, const auto& b) { return a.from_s < b.from_s; }));
  // Half of the slowdowns are below the geometric mean of the range, 2.4.
  const auto below =
      std::count_if(drawn.slow.begin(), drawn.slow.end(), [](const auto& spell) { return spell.slowdown < 2.4; });
  const double half = static_cast<double>(drawn.slow.size()) / 2;
  CHECK(std::abs(static_cast<double>(below) - half) < 4 * std::sqrt(half / 2));
}

TEST_CASE("failures do not depend on stragglers, nor what is drawn on how long the run is", "[production]") {
  const Nodes job;
  const FailureModel failures{.node_mtbf_s = 1e6, .checkpoint_s = 1};
  const ProductionOptions whole = options_with(1e7);
  ProductionOptions shorter = whole;
  shorter.time_s = 5e5;
  ProductionOptions calm = whole;
  calm.stragglers.reset();
  const Incidents all = draw_incidents(whole, failures, job.nodes, job.cluster);
  const Incidents half = draw_incidents(shorter, failures, job.nodes, job.cluster);
  const Incidents none = draw_incidents(calm, failures, job.nodes, job.cluster);
  REQUIRE(none.failures.size() == all.failures.size());
  CHECK(none.slow.empty());
  REQUIRE(half.slow.size() < all.slow.size());
  for (std::size_t i = 0; i < half.slow.size(); ++i) CHECK(half.slow[i].from_s == all.slow[i].from_s);
  for (std::size_t i = 0; i < half.failures.size(); ++i) CHECK(half.failures[i].at_s == all.failures[i].at_s);
}

TEST_CASE("a run with more incidents than can be kept is refused", "[production]") {
  const Nodes job;
  CHECK(test::problems_of([&] { (void)draw_incidents(options_with(1e-3), std::nullopt, job.nodes, job.cluster); }) ==
        std::vector<std::string>{"0:0: the run would have 4e+11 slow spells, more than 1e+06"});
}

}  // namespace
}  // namespace hdpsim
