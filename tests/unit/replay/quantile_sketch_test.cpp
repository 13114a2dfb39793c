#include "sim/replay/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a quantile is within 0.1 % of the value at its place, over many orders of magnitude", "[quantile_sketch]") {
  const std::uint64_t seed = 20260101;
  CAPTURE(seed);  // the whole replay line: the test has no other choice
  RandomStream random(seed, "quantiles");
  for (const std::size_t count : {1, 2, 7, 1000, 20'000}) {
    QuantileSketch sketch;
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(std::exp(20 * random.uniform() - 10));
      sketch.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double p : {0.0, 0.05, 0.5, 0.95, 0.99, 1.0}) {
      CAPTURE(count, p);
      const auto place = static_cast<std::size_t>(std::max(1.0, std::ceil(p * static_cast<double>(count))));
      const double exact = values[place - 1];
      CHECK(std::abs(sketch.quantile(p) - exact) <= 0.001 * exact);
    }
    CHECK(sketch.quantile(0) == values.front());
    CHECK(sketch.quantile(1) == values.back());
  }
}

TEST_CASE("values at a power of two and just below it are told apart", "[quantile_sketch]") {
  for (const double power : {0.125, 0.5, 1.0, 2.0, 1024.0}) {
    CAPTURE(power);
    QuantileSketch sketch;
    for (int i = 0; i < 50; ++i) sketch.add(power);
    for (int i = 0; i < 50; ++i) sketch.add(power * 0.99);
    CHECK(sketch.quantile(0.3) == Approx(power * 0.99).epsilon(0.001));
    CHECK(sketch.quantile(0.7) == Approx(power).epsilon(0.001));
  }
}

TEST_CASE("what has no place among positive values is a bug", "[quantile_sketch]") {
  QuantileSketch sketch;
  CHECK_THROWS_AS(sketch.add(0), CheckFailure);
  CHECK_THROWS_AS(sketch.add(-1), CheckFailure);
  CHECK_THROWS_AS(sketch.add(std::nan("")), CheckFailure);
  CHECK_THROWS_AS(sketch.quantile(0.5), CheckFailure);
}

}  // namespace
}  // namespace hdpsim
