#include "sim/trace/length_tally.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/trace/length_distribution.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

struct Exact {
  std::vector<std::int64_t> sorted;
  [[nodiscard]] std::int64_t quantile(double q) const {
    const auto place = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size()) - 1e-6));
    return sorted[std::max<std::size_t>(place, 1) - 1];
  }
};

}  // namespace

TEST_CASE("quantiles from buckets are within 0.1 % of those of the sorted lengths", "[trace]") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto lengths = make_distribution(Lognormal{.mu = 9, .sigma = 2.5});
    RandomStream random(seed, "test");
    LengthTally tally;
    Exact exact;
    for (int i = 0; i < 100'000; ++i) {
      exact.sorted.push_back(lengths->draw(random));
      tally.add(exact.sorted.back());
    }
    std::sort(exact.sorted.begin(), exact.sorted.end());
    for (const double q : {0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
      const std::int64_t expected = exact.quantile(q);
      INFO("replay: seed " << seed << ", quantile " << q);
      CHECK(static_cast<double>(tally.quantile(q)) == Approx(static_cast<double>(expected)).epsilon(0.001));
      if (expected <= 2048) CHECK(tally.quantile(q) == expected);
    }
  }
}

TEST_CASE("the place of a quantile does not slip by binary rounding", "[trace]") {
  LengthTally tally;
  for (std::int64_t i = 1; i <= 100; ++i) tally.add(i);
  for (int percent = 1; percent <= 100; ++percent) CHECK(tally.quantile(percent / 100.0) == percent);
  CHECK(tally.quantile(0) == 1);
}

TEST_CASE("sums above a power of two are exact on both sides of it", "[trace]") {
  for (const int exponent : {1, 11, 12, 21, 39}) {
    const std::int64_t edge = std::int64_t{1} << exponent;
    LengthTally tally;
    for (const std::int64_t tokens : {edge - 1, edge, edge + 1}) tally.add(tokens);
    const LengthTally::Sums above = tally.above(exponent);
    CAPTURE(exponent);
    CHECK(above.count == 1);
    CHECK((above.tokens == edge + 1));
    CHECK((above.squares == Int128{edge + 1} * (edge + 1)));
    CHECK((tally.total().tokens == Int128{3} * edge));
  }
}

TEST_CASE("buckets ascend, do not overlap, hold their lengths and are narrower than 0.1 %", "[trace]") {
  LengthTally tally;
  RandomStream random(1, "test");
  std::int64_t count = 0;
  for (int exponent = 0; exponent < 40; ++exponent) {
    for (int i = 0; i < 100; ++i, ++count) {
      tally.add((std::int64_t{1} << exponent) + static_cast<std::int64_t>(random.below(std::uint64_t{1} << exponent)));
    }
  }
  std::int64_t last = 0;
  for (const LengthTally::Bucket& bucket : tally.buckets()) {
    CHECK(bucket.lower > last);
    CHECK(bucket.mean >= static_cast<double>(bucket.lower));
    CHECK(bucket.mean <= static_cast<double>(bucket.upper));
    CHECK(static_cast<double>(bucket.upper - bucket.lower) < 0.001 * static_cast<double>(bucket.lower));
    last = bucket.upper;
    count -= bucket.count;
  }
  CHECK(count == 0);
}

TEST_CASE("the shortest and the longest length have a bucket; what is outside is a bug of the caller", "[trace]") {
  LengthTally tally;
  tally.add(longest_length);
  tally.add(1);
  CHECK(tally.min() == 1);
  CHECK(tally.max() == longest_length);
  CHECK(tally.buckets().size() == 2);
  CHECK(tally.buckets().back().upper == longest_length);
  CHECK_THROWS_AS(tally.add(0), CheckFailure);
  CHECK_THROWS_AS(tally.add(longest_length + 1), CheckFailure);
  CHECK_THROWS_AS(static_cast<void>(LengthTally().quantile(0.5)), CheckFailure);
}

}  // namespace hdpsim
