#include "calib/measure/repeat.h"

#include <vector>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

/// How many of an endless row of samples the rule takes.
template <class Draw>
int runs_until_enough(const StoppingRule& rule, const Draw& draw) {
  std::vector<double> samples;
  while (!rule.enough(samples)) samples.push_back(draw());
  return static_cast<int>(samples.size());
}

constexpr StoppingLimits patient = {.least_runs = 10, .most_runs = 100'000, .least_s = 0, .most_s = 1e9};

TEST_CASE("equal samples are enough after the least number of runs, not one before", "[stopping]") {
  const StoppingRule rule{0.01, patient};
  CHECK(runs_until_enough(rule, [] { return 1.0; }) == 10);
}

TEST_CASE("ten times the noise takes a hundred times the samples", "[stopping]") {
  const std::uint64_t seed = 3;
  CAPTURE(seed);
  RandomStream random(seed, "samples");
  const StoppingRule rule{0.002, patient};
  const int few = runs_until_enough(rule, [&] { return 1 + 0.01 * random.normal(); });
  const int many = runs_until_enough(rule, [&] { return 1 + 0.1 * random.normal(); });
  // The standard error of a median is 1.2533 sigma / sqrt(n).
  CHECK(few == Approx(39).epsilon(0.4));
  CHECK(many == Approx(3900).epsilon(0.3));
}

TEST_CASE("short samples are taken until they fill the least time", "[stopping]") {
  StoppingLimits limits = patient;
  limits.least_s = 0.5;
  const StoppingRule rule{0.01, limits};
  // A hair above 0.5 s / 50, so that the rounding of their sum cannot matter.
  CHECK(runs_until_enough(rule, [] { return 0.010001; }) == 50);
}

TEST_CASE("very noisy samples end with the time limit", "[stopping]") {
  RandomStream random(1, "samples");
  const StoppingRule rule{1e-6, {.least_runs = 10, .least_s = 0, .most_s = 1}};
  const int runs = runs_until_enough(rule, [&] { return 0.01 * (0.5 + random.uniform()); });
  CHECK(runs == Approx(100).epsilon(0.15));
}

TEST_CASE("work that takes seconds is repeated three times", "[stopping]") {
  const StoppingRule rule{1e-6, {.least_runs = 10, .least_long_runs = 3, .most_s = 0.5}};
  CHECK(runs_until_enough(rule, [] { return 5.0; }) == 3);
}

TEST_CASE("no row of samples is longer than the limit, even if they are all zero", "[stopping]") {
  const StoppingRule rule{0.01, {.most_runs = 77}};
  CHECK(runs_until_enough(rule, [] { return 0.0; }) == 77);
}

}  // namespace
}  // namespace hdpsim::calib
