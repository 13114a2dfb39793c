#include "sim/trace/length_tally.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim {

TEST_CASE("a table of drawn lengths gives back their percentiles and their tokens", "[trace]") {
  const auto source = make_distribution(
      LognormalPareto{.mu = 6, .sigma = 1.3, .tail_from = 11'000, .alpha = 2, .max = 2 << 20, .tail_share = 0.01});
  RandomStream random(1, "test");
  LengthTally drawn;
  for (int i = 0; i < 300'000; ++i) drawn.add(source->draw(random));

  const auto table = quantile_table(drawn);
  CHECK(table.size() > 900);
  CHECK(table.size() <= 1000);
  const auto again = make_distribution(table);
  LengthTally redrawn;
  for (int i = 0; i < 300'000; ++i) redrawn.add(again->quantile((i + 0.5) / 300'000));

  CHECK(redrawn.min() == drawn.min());
  for (const double q : {0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999}) {
    CAPTURE(q);
    // A table point is never further than 0.00132 of the documents away; 1 token of rounding.
    CHECK(static_cast<double>(redrawn.quantile(q)) ==
          Approx(static_cast<double>(drawn.quantile(q))).epsilon(0.01).margin(1));
  }
  const auto tokens = [](const LengthTally& tally) { return static_cast<double>(tally.total().tokens); };
  CHECK(tokens(redrawn) == Approx(tokens(drawn)).epsilon(0.005));
}

TEST_CASE("a table of a distribution goes through the distribution", "[trace]") {
  const auto source = make_distribution(Lognormal{.mu = 7, .sigma = 1, .min = 16, .max = 100'000});
  const auto table = quantile_table(*source, 200);
  CHECK(table.size() <= 200);
  CHECK(table.front().length == 16);
  CHECK(table.back().length == 100'000);
  const auto again = make_distribution(table);
  for (const QuantilePoint& point : table) {
    CHECK(point.length == source->quantile(point.quantile));
    CHECK(again->quantile(point.quantile) == point.length);
  }
}

TEST_CASE("points at which nothing changes are left out", "[trace]") {
  LengthTally equal;
  for (int i = 0; i < 1000; ++i) equal.add(512);
  const auto table = quantile_table(equal);
  REQUIRE(table.size() == 2);
  CHECK(table[0].length == 512);
  CHECK(table[1].length == 512);
  CHECK(make_distribution(table)->quantile(0.3) == 512);
}

}  // namespace hdpsim
