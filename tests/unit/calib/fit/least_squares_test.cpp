#include "calib/fit/impl/linear_fits.h"

#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

/// Samples of launch + byte x bytes, at sizes that double.
Equations doubling_sizes(double launch_s, double byte_s, int sizes) {
  Equations equations;
  double bytes = 1024;
  for (int i = 0; i < sizes; ++i, bytes *= 2) {
    equations.features.push_back({1, bytes});
    equations.seconds.push_back(launch_s + byte_s * bytes);
  }
  return equations;
}

TEST_CASE("an exact law is found exactly, over sizes of six orders of magnitude", "[fit]") {
  const auto found = relative_least_squares(doubling_sizes(5e-6, 1e-12, 20));
  REQUIRE(found.size() == 2);
  CHECK(found[0] == Approx(5e-6).epsilon(1e-9));
  CHECK(found[1] == Approx(1e-12).epsilon(1e-9));
}

TEST_CASE("errors count relative to the time: small samples are worth as much as large ones", "[fit]") {
  // Two sizes with one coefficient to explain them: t = x and t = 2000 x at x = 1 and x = 1000. The least sum of
  // squared relative errors (c - 1)^2 + (c / 2 - 1)^2 is at c = 1.2; absolute errors would give nearly 2.
  const auto found = relative_least_squares({{{1}, {1000}}, {1, 2000}});
  CHECK(found.at(0) == Approx(1.2));
}

TEST_CASE("no coefficient is negative, however the samples lie", "[fit]") {
  // A straight line through them would begin at -1.
  const auto found = relative_least_squares({{{1, 1}, {1, 2}, {1, 3}}, {1, 3, 5}});
  CHECK(found.at(0) == 0);
  CHECK(found.at(1) > 1);

  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "equations");
    Equations equations;
    for (int i = 0; i < 12; ++i) {
      equations.features.push_back({random.uniform(), random.uniform(), random.uniform(), 1});
      equations.seconds.push_back(0.01 + random.uniform());
    }
    const auto coefficients = relative_least_squares(equations);
    for (const double coefficient : coefficients) REQUIRE(coefficient >= 0);
  }
}

TEST_CASE("one disturbed measurement in twenty does not move the law", "[fit]") {
  Equations equations = doubling_sizes(5e-6, 1e-12, 20);
  testing::Measured measured(0.01);
  for (double& seconds : equations.seconds) seconds = measured(seconds).median_s;
  equations.seconds[17] *= 3;
  const auto found = relative_least_squares(equations);
  CHECK(found.at(0) == Approx(5e-6).epsilon(0.02));
  CHECK(found.at(1) == Approx(1e-12).epsilon(0.03));
}

TEST_CASE("a term that no sample has gets nothing", "[fit]") {
  const auto found = relative_least_squares({{{0, 1}, {0, 2}}, {3, 6}});
  CHECK(found.at(0) == 0);
  CHECK(found.at(1) == Approx(3));
  CHECK(relative_least_squares({}).empty());
}

}  // namespace
}  // namespace hdpsim::calib
