#include "sim/analysis/goodput.h"

#include <cmath>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr double hour = 3600;

TEST_CASE("Young's interval grows with the root of both times", "[goodput]") {
  CHECK(young_interval(50, 10'000) == Approx(1000));
  CHECK(young_interval(200, 10'000) == Approx(2000));
}

TEST_CASE("Daly's interval is Young's, less a checkpoint, where failures are rare", "[goodput]") {
  const double mtbf = 1e9;
  CHECK(daly_interval(10, mtbf) == Approx(young_interval(10, mtbf) - 10).epsilon(1e-4));
  CHECK(daly_interval(3 * hour, hour) == Approx(hour));  // a checkpoint longer than 2 M
}

TEST_CASE("without failures only checkpoints are lost", "[goodput]") {
  const FailureModel model{.node_mtbf_s = 1e15, .checkpoint_s = 60, .restart_s = 600};
  CHECK(expected_goodput(model, 1e15, 540) == Approx(0.9));
}

TEST_CASE("no interval beats Daly's by more than a thousandth", "[goodput]") {
  const double mtbf = GENERATE(0.5 * hour, 4 * hour, 100 * hour);
  const FailureModel model{.node_mtbf_s = 1, .checkpoint_s = 60, .restart_s = 300};
  const double best = expected_goodput(model, mtbf, daly_interval(model.checkpoint_s, mtbf));
  for (int i = 0; i < 145; ++i) {  // to 20 hours
    CHECK(expected_goodput(model, mtbf, 60 * std::pow(1.05, i)) < best + 1e-3);
  }
}

TEST_CASE("a run of failures drawn at random agrees with the formula", "[goodput]") {
  const double node_mtbf = GENERATE(50 * hour, 1000 * hour, 50'000 * hour);
  const FailureModel model{.node_mtbf_s = node_mtbf, .checkpoint_s = 60, .restart_s = 600};
  const Goodput found = goodput(model, 128, Duration::seconds(20));
  CAPTURE(found.share, found.simulated, found.simulated_error);
  CHECK(found.mtbf_s == Approx(node_mtbf / 128));
  CHECK(found.simulated_error > 0);
  CHECK(found.simulated_error < 0.01);
  CHECK(std::abs(found.simulated - found.share) < 4 * found.simulated_error);
  CHECK(found.every_steps == std::max<std::int64_t>(1, std::llround(found.daly_s / 20)));
}

// A job of one node that fails once in `hour`, all other times in such units.
Goodput of_one_node(double restart, double checkpoint, double interval, std::uint64_t seed) {
  const FailureModel model{.node_mtbf_s = hour,
                           .checkpoint_s = checkpoint * hour,
                           .restart_s = restart * hour,
                           .interval_s = interval * hour,
                           .seed = seed};
  return goodput(model, 1, Duration::seconds(interval * hour));
}

TEST_CASE("property: failures drawn at random agree with the formula, however often jobs restart", "[goodput]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RandomStream random(seed, "goodput test");
    const double restart = 3 * random.uniform();
    const double checkpoint = 0.01 + random.uniform();
    const double interval = 0.01 + 2 * random.uniform();
    CAPTURE(seed, restart, checkpoint, interval);
    const Goodput found = of_one_node(restart, checkpoint, interval, seed);
    CHECK(found.simulated_error > 0);
    CHECK(std::abs(found.simulated - found.share) < 4.5 * found.simulated_error);
  }
}

TEST_CASE("a restart above three times the time between failures is not drawn, one below is", "[goodput]") {
  const Goodput drawn = of_one_node(2.99, 0.1, 0.5, 1);
  CHECK(drawn.simulated_error > 0);
  CHECK(drawn.simulated != drawn.share);
  const Goodput exact = of_one_node(3.01, 0.1, 0.5, 1);
  CHECK(exact.simulated_error == 0);
  CHECK(exact.simulated == exact.share);
  CHECK(exact.share == Approx(0.5 / (std::exp(3.01) * std::expm1(0.6))));
}

TEST_CASE("jobs that never get to work have a goodput of 0", "[goodput]") {
  const Goodput restarting = of_one_node(1e6, 0.1, 0.5, 1);
  CHECK(restarting.share == 0);
  CHECK(restarting.simulated == 0);
  const Goodput failing = of_one_node(0.1, 1e6, 0.5, 1);
  CHECK(failing.share == 0);
  CHECK(failing.simulated == 0);
}

TEST_CASE("a stated interval is kept in whole steps, one at least", "[goodput]") {
  const FailureModel model{.node_mtbf_s = 1e6, .checkpoint_s = 1, .restart_s = 0, .interval_s = 70};
  CHECK(goodput(model, 1, Duration::seconds(20)).every_steps == 4);  // 3.5 steps, rounded
  CHECK(goodput(model, 1, Duration::seconds(1000)).every_steps == 1);
}

TEST_CASE("the same seed gives the same failures", "[goodput]") {
  const FailureModel model{.node_mtbf_s = 1e6, .checkpoint_s = 60, .restart_s = 60};
  FailureModel other = model;
  other.seed = 2;
  CHECK(goodput(model, 64, 10_s).simulated == goodput(model, 64, 10_s).simulated);
  CHECK(goodput(model, 64, 10_s).simulated != goodput(other, 64, 10_s).simulated);
}

}  // namespace
}  // namespace hdpsim
