#include "calib/measure/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

TEST_CASE("a summary of 1 ... 11 has its median at 6, p10 at 2 and p90 at 10", "[summary]") {
  std::vector<double> values;
  for (const int value : {7, 1, 9, 3, 11, 5, 2, 8, 4, 10, 6}) values.push_back(value);
  const Timing timing = summary(values);
  CHECK(timing.median_s == 6);
  CHECK(timing.p10_s == 2);
  CHECK(timing.p90_s == 10);
  CHECK(timing.runs == 11);
  CHECK(timing.cv == Approx(std::sqrt(11.0) / 6));  // variance of 1 ... n is n (n + 1) / 12
}

TEST_CASE("a percentile between two samples lies on the line between them", "[summary]") {
  const std::vector<double> values = {10, 20};
  CHECK(percentile(values, 0.25) == 12.5);
  CHECK(percentile(values, 1) == 20);
  CHECK(summary(std::vector<double>{3}).median_s == 3);
  CHECK(summary(std::vector<double>{3}).cv == 0);
}

TEST_CASE("the stated noise of a median is the spread that medians really have", "[summary]") {
  constexpr int medians = 400;
  constexpr int samples = 101;
  const std::uint64_t seed = 7;
  CAPTURE(seed);
  RandomStream random(seed, "noise");
  double stated = 0;
  double squares = 0;
  for (int i = 0; i < medians; ++i) {
    std::vector<double> values;
    values.reserve(samples);
    for (int j = 0; j < samples; ++j) values.push_back(1 + 0.05 * random.normal());
    stated += noise_of_median(values) / medians;
    const double error = summary(values).median_s - 1;
    squares += error * error / medians;
  }
  CHECK(stated == Approx(std::sqrt(squares)).epsilon(0.15));
}

TEST_CASE("one sample in five hundred times as slow does not change the noise of the median", "[summary]") {
  std::vector<double> values;
  values.reserve(100);
  for (int i = 0; i < 100; ++i) values.push_back(1 + 0.001 * (i % 11));
  const double quiet = noise_of_median(values);
  for (std::size_t i = 0; i < values.size(); i += 5) values[i] = 500;
  CHECK(noise_of_median(values) <= 2 * quiet);
}

TEST_CASE("nothing is known of the noise of two samples", "[summary]") {
  CHECK(noise_of_median(std::vector<double>{1, 1}) == std::numeric_limits<double>::infinity());
}

TEST_CASE("rounds are pooled: a quantile of their medians, the outer percentiles, all runs", "[summary]") {
  const std::vector<Timing> rounds = {{2, 1, 3, 0.1, 10}, {4, 3.5, 5, 0.2, 30}};
  CHECK(pooled(rounds, 0) == Timing{2, 1, 5, 0.2, 40});
  CHECK(pooled(rounds, 0.25).median_s == 2.5);
  CHECK(pooled(rounds, 0.5).median_s == 3);
}

TEST_CASE("rounds are as far apart as every second one is from those between", "[summary]") {
  const std::vector<double> two = {2, 4};
  CHECK(gap_of_halves(two, 0.25) == Approx(2.0 / 3));
  // 1 and 3 against 2 and 10.
  const std::vector<double> four = {1, 2, 3, 10};
  CHECK(gap_of_halves(four, 0) == Approx(1 / 1.5));
  CHECK(gap_of_halves(four, 0.5) == Approx(4 / 4.0));
  const std::vector<double> same = {3, 3, 5, 5};
  CHECK(gap_of_halves(same, 0.5) == 0);
}

TEST_CASE("what rounds leave uncertain of a quantile is two standard deviations of what quantiles really have",
          "[summary]") {
  std::vector<double> one_to_16;
  for (int i = 16; i >= 1; --i) one_to_16.push_back(i);
  // A rank of 16 is uncertain by sqrt(1/4 / 16) = 1/8: from the quantile 3/8 to 5/8 of 15 steps.
  CHECK(uncertainty_of_quantile(one_to_16, 0.5) == Approx(15.0 / 4 / 8.5));
  CHECK(uncertainty_of_quantile(std::vector<double>{3}, 0.25) == 0);

  constexpr int repetitions = 400;
  constexpr int medians = 40;
  const std::uint64_t seed = 7;
  CAPTURE(seed);
  RandomStream random(seed, "rounds");
  double stated = 0;
  std::vector<double> found;
  for (int i = 0; i < repetitions; ++i) {
    std::vector<double> values;
    values.reserve(medians);
    for (int j = 0; j < medians; ++j) values.push_back(1 + 0.05 * random.normal());
    stated += uncertainty_of_quantile(values, 0.25) / repetitions;
    std::sort(values.begin(), values.end());
    found.push_back(percentile(values, 0.25));
  }
  const Timing quartiles = summary(found);
  CHECK(stated == Approx(2 * quartiles.cv).epsilon(0.15));
}

TEST_CASE("one lucky round and one disturbed one of eight do not move the lower quartile far", "[summary]") {
  std::vector<Timing> rounds;
  for (const double median : {1.00, 0.80, 1.01, 1.02, 2.00, 1.01, 1.00, 1.02}) {
    rounds.push_back({median, median, median, 0, 1});
  }
  CHECK(pooled(rounds, 0.25).median_s == Approx(1).epsilon(0.005));
}

}  // namespace
}  // namespace hdpsim::calib
