// Shipped studies on a watched network: whatever the plans do to it, links are shared as they should be.

#include "sim/run/step.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/checked_network.h"

namespace hdpsim::spec {
namespace {

/// Simulates the first step of every run. Returns how many states of the network were looked at.
std::size_t check_study(const std::vector<std::string>& overrides) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = load_study(HDPSIM_SOURCE_DIR "/configs/studies/tiny.yaml", overrides, catalog);
  std::size_t checks = 0;
  for (const StudyPoint& point : study.points) {
    const auto world = point.make_world();
    tests::CheckedNetwork network(*world->machine().network);
    world->machine().network = &network;
    world->machine().traffic = nullptr;  // collectives that overlap do not slow each other
    for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
      const SimulatedStep step = simulate_step(point, plan, 0, *world);
      for (std::size_t link = 0; link < step.links.main.bytes.size(); ++link) {
        const Bytes bytes = step.links.main.bytes[link];
        if (bytes > Bytes{}) CHECK(step.result.time >= bytes / network.link_rate(LinkId(link)));
      }
    }
    checks += network.checks();
  }
  return checks;
}

TEST_CASE("in a study flows share links max-min fairly at every moment, in both grains", "[network]") {
  const std::string grain = GENERATE("fluid", "exact");
  CAPTURE(grain);
  // Without offload, which needs fewer rings at a time.
  const std::string rings = "plans=[static, hdp-naive, hdp-balance]";
  CHECK(check_study({"grain=" + grain, rings, "cluster.node.nics.count=1"}) > 100);
  CHECK(check_study({"grain=" + grain, rings, "cluster.node.nics.count=1", "cluster.tiers.tor.fan_in=2",
                     "cluster.routing={policy: ecmp, seed: 3}", "cluster.links={node 1 nic 0: 0.2}"}) > 100);
}

}  // namespace
}  // namespace hdpsim::spec
