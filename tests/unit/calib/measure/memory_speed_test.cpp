#include "calib/measure/collect.h"

#include <cmath>

#include "calib/measure/summary.h"
#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

constexpr int rounds = 20;

/// In round i emptying takes 1 + 0.05 i milliseconds: of 20 rounds the lower quartile lies at i = 4.75.
double emptying(double round) {
  return 1e-3 * (1 + 0.05 * round);
}
constexpr double usual_round = 4.75;

/// 2 ms x emptying^slope, and what `others` make of it.
template <class Others>
std::vector<Measurement> measured(std::int64_t m, double slope, const Others& others) {
  std::vector<Measurement> all;
  for (int round = 0; round < rounds; ++round) {
    const double seconds = 2e-3 * std::pow(emptying(round) / 1e-3, slope) * others(round);
    Measurement measurement;
    measurement.subject = Gemm{m, 2, 3};
    measurement.round = round;
    measurement.timing = {seconds, 0.9 * seconds, 1.1 * seconds, 0.05, 12};
    measurement.emptying_s = emptying(round);
    all.push_back(measurement);
  }
  return all;
}

std::vector<Measurement> measured(std::int64_t m, double slope) {
  return measured(m, slope, [](int) { return 1.0; });
}

TEST_CASE("kernels that follow the speed of memory are brought to the lower quartile of it", "[memory_speed]") {
  std::vector<Measurement> all = measured(1, 0.4);
  const std::vector<Measurement> steady = measured(2, 0);
  all.insert(all.end(), steady.begin(), steady.end());
  const double usual = 2e-3 * std::pow(1 + 0.05 * usual_round, 0.4);
  for (const Measurement& measurement : at_one_speed_of_memory(all)) {
    const double expected = std::get<Gemm>(measurement.subject).m == 1 ? usual : 2e-3;
    CHECK(measurement.timing.median_s == Approx(expected));
    CHECK(measurement.timing.p10_s == Approx(0.9 * expected));
    CHECK(measurement.timing.p90_s == Approx(1.1 * expected));
    CHECK(measurement.timing.runs == 12);
  }
}

TEST_CASE("rounds that something else disturbed do not change what memory costs the others", "[memory_speed]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "disturbances");
    std::vector<bool> disturbed(rounds);
    for (int i = 0; i < 3; ++i) disturbed[random.below(rounds)] = true;
    // 17 of 20 rounds make 136 of 190 pairs, more than half of them right to the last digit.
    const auto others = [&](int round) {
      return disturbed[static_cast<std::size_t>(round)] ? 1 + random.uniform() : 1;
    };
    const std::vector<Measurement> all = at_one_speed_of_memory(measured(1, 0.5, others));
    for (const Measurement& measurement : all) {
      if (disturbed[static_cast<std::size_t>(measurement.round)]) continue;
      CHECK(measurement.timing.median_s == Approx(2e-3 * std::sqrt(1 + 0.05 * usual_round)));
    }
  }
}

TEST_CASE("no kernel is slower because memory is faster, and none follows memory more than wholly", "[memory_speed]") {
  for (const Measurement& measurement : at_one_speed_of_memory(measured(1, -0.5))) {
    CHECK(measurement.timing == measured(1, -0.5)[static_cast<std::size_t>(measurement.round)].timing);
  }
  for (const Measurement& measurement : at_one_speed_of_memory(measured(1, 3))) {
    const double now = emptying(measurement.round);
    CHECK(measurement.timing.median_s == Approx(2e-3 * std::pow(now / 1e-3, 3) * emptying(usual_round) / now));
  }
}

TEST_CASE("rounds are never less alike afterwards", "[memory_speed]") {
  const auto uncertainty = [](const std::vector<Measurement>& all) {
    std::vector<double> medians;
    for (const Measurement& measurement : all) medians.push_back(measurement.timing.median_s);
    return uncertainty_of_quantile(medians, 0.25);
  };
  int scaled = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "rounds");
    const std::vector<Measurement> before = measured(1, 0, [&](int) { return 1 + 0.1 * random.uniform(); });
    const std::vector<Measurement> after = at_one_speed_of_memory(before);
    CHECK(uncertainty(after) <= uncertainty(before));
    if (uncertainty(after) < uncertainty(before)) ++scaled;
  }
  CHECK(scaled < 50);
}

TEST_CASE("few rounds stay as they are, and so do those that do not know how fast memory was", "[memory_speed]") {
  std::vector<Measurement> few = measured(1, 0.4);
  few.resize(7);
  CHECK(at_one_speed_of_memory(few)[6].timing == few[6].timing);
  std::vector<Measurement> unknown = measured(1, 0.4);
  for (Measurement& measurement : unknown) measurement.emptying_s.reset();
  CHECK(at_one_speed_of_memory(unknown)[19].timing == unknown[19].timing);
  std::vector<Measurement> equal = measured(1, 0.4);
  for (Measurement& measurement : equal) measurement.emptying_s = 1e-3;
  CHECK(at_one_speed_of_memory(equal)[19].timing == equal[19].timing);
}

}  // namespace
}  // namespace hdpsim::calib
