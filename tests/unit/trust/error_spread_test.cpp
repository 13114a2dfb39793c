#include "sim/trust/error_spread.h"

#include <cmath>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a spread is Student's distribution of the logarithm: its range and its probabilities agree", "[trust]") {
  const ErrorSpread spread{.center = std::log(1.1), .scale = 0.1, .freedom = 2};
  // Abramowitz and Stegun, table 26.10: 95 % of T with two degrees of freedom are below 2.920.
  const FactorRange range = spread.range(0.9);
  CHECK(range.least == Approx(1.1 * std::exp(-0.2920)).epsilon(1e-4));
  CHECK(range.most == Approx(1.1 * std::exp(0.2920)).epsilon(1e-4));
  CHECK(spread.probability_up_to(range.least) == Approx(0.05));
  CHECK(spread.probability_up_to(1.1) == Approx(0.5));
  CHECK(spread.probability_up_to(range.most) == Approx(0.95));
}

TEST_CASE("an independent cause adds in squares", "[trust]") {
  const ErrorSpread three{.center = 0, .scale = 0.03, .freedom = 5};
  const ErrorSpread five{.center = 0, .scale = 0.05, .freedom = 5};
  CHECK(three.range(0.9, 0.04).most == Approx(five.range(0.9).most));
}

TEST_CASE("without a scale an error is its center", "[trust]") {
  const ErrorSpread sure{.center = std::log(2.0), .scale = 0, .freedom = 3};
  CHECK(sure.probability_up_to(1.99) == 0);
  CHECK(sure.probability_up_to(2.01) == 1);
  CHECK(sure.range(0.9).least == Approx(2));
}

TEST_CASE("a set's errors are its median, and its middle 90 % as those of a normal distribution", "[trust]") {
  std::vector<double> errors;
  for (int i = 0; i <= 100; ++i) errors.push_back(0.01 * i);  // the middle 90 % are from 0.05 to 0.95
  const SetErrors found = set_errors(errors);
  CHECK(found.center == Approx(0.5));
  CHECK(found.spread == Approx(0.45 / 1.6449));
  errors.back() = 1000;  // what is farther out than the interval counts no more than its edge
  CHECK(set_errors(errors).spread == Approx(0.45 / 1.6449));
  CHECK(set_errors({0.2}).spread == 0);
  CHECK(set_errors({0.2}).center == 0.2);
}

TEST_CASE("errors without a sign lie around 0", "[trust]") {
  std::vector<double> errors;
  for (int i = 0; i <= 100; ++i) errors.push_back((i % 2 == 0 ? 0.01 : -0.01) * i);
  const SetErrors found = unsigned_set_errors(errors);
  CHECK(found.center == 0);
  CHECK(found.spread == Approx(0.9 / 1.6449));
}

TEST_CASE("a belief is the mean of what was known and of the sets, by their weights", "[trust]") {
  // Two sets at 0.1 and 0.3 with spreads of 0.05, after a center of 0 that weighs one set and 20 % that weigh two:
  // center (0 + 2 x 0.2) / 3; squares 2 x 0.04 + (0.01 + 0.01) + 2 x 0.0025 + 2/3 x 0.2^2, over 2 + 2.
  const ErrorBelief prior{.center = 0, .center_sets = 1, .variance = 0.04, .variance_sets = 2};
  const ErrorBelief belief = prior.with({{0.1, 0.05}, {0.3, 0.05}});
  CHECK(belief.center == Approx(0.4 / 3));
  CHECK(belief.variance == Approx((0.08 + 0.02 + 0.005 + 2.0 / 3 * 0.04) / 4));
  CHECK(belief.variance_sets == 4);
  const ErrorSpread spread = belief.of_new_set();
  CHECK(spread.center == Approx(0.4 / 3));
  CHECK(spread.scale == Approx(std::sqrt(belief.variance * (1 + 1.0 / 3))));
  CHECK(spread.freedom == 4);
}

TEST_CASE("few sets make a wide interval, many a narrow one", "[trust]") {
  double before = 1e9;
  for (const std::size_t sets : {1, 2, 4, 16, 256}) {
    std::vector<SetErrors> errors(sets, SetErrors{0, 0.1});
    const double most = ErrorBelief{}.with(errors).of_new_set().range(0.9).most;
    CHECK(most < before);
    before = most;
  }
  CHECK(std::log(before) == Approx(1.6449 * 0.1).epsilon(0.02));
}

// Sets with a center of their own (deviation 0.1) and figures around it (0.05), 6 sets known: the interval of a figure
// of a seventh holds about 90 % of them.
TEST_CASE("nine of ten figures of new sets lie in the interval that other sets make", "[trust]") {
  constexpr int worlds = 4000;
  int inside = 0;
  for (std::uint64_t world = 0; world < worlds; ++world) {
    RandomStream random(1, "sets of errors", world);
    std::vector<SetErrors> sets;
    for (int set = 0; set < 6; ++set) {
      const double center = 0.1 * random.normal();
      std::vector<double> errors;
      for (int figure = 0; figure < 40; ++figure) errors.push_back(center + 0.05 * random.normal());
      sets.push_back(set_errors(errors));
    }
    const double error = 0.1 * random.normal() + 0.05 * random.normal();
    const FactorRange range = ErrorBelief{}.with(sets).of_new_set().range(0.9);
    inside += std::exp(error) >= range.least && std::exp(error) <= range.most ? 1 : 0;
  }
  CHECK(static_cast<double>(inside) / worlds > 0.88);
  CHECK(static_cast<double>(inside) / worlds < 0.97);
}

}  // namespace
}  // namespace hdpsim
