#include "sim/analysis/kendall_tau.h"

#include <cmath>

#include "sim/base/check.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("rankings that agree have a tau of 1, those that are turned round -1, whatever the values", "[report]") {
  CHECK(kendall_tau({1, 2, 3, 4}, {10, 20, 30, 1000}) == Approx(1));
  CHECK(kendall_tau({1, 2, 3, 4}, {-1, -2, -30, -31}) == Approx(-1));
}

TEST_CASE("tau is pairs in order less pairs out of order, over all pairs", "[report]") {
  // Of the 6 pairs of 1 2 3 4 against 1 3 2 4 only (2, 3) is out of order: (5 - 1) / 6.
  CHECK(kendall_tau({1, 2, 3, 4}, {1, 3, 2, 4}) == Approx(4.0 / 6));
  // Of the 3 pairs of 1 2 3 against 3 1 2 two are out of order: (1 - 2) / 3.
  CHECK(kendall_tau({1, 2, 3}, {3, 1, 2}) == Approx(-1.0 / 3));
}

TEST_CASE("ties count for no order and shrink the scale of their own ranking", "[report]") {
  // a orders 2 of its 3 pairs, b all 3; both of the 2 are in order: 2 / sqrt(2 * 3).
  CHECK(kendall_tau({1, 1, 2}, {1, 2, 3}) == Approx(2 / std::sqrt(6.0)));
}

TEST_CASE("nothing is said of what is not ordered", "[report]") {
  CHECK_FALSE(kendall_tau({}, {}));
  CHECK_FALSE(kendall_tau({1}, {2}));
  CHECK_FALSE(kendall_tau({1, 1}, {2, 3}));
  CHECK_THROWS_AS(kendall_tau({1}, {1, 2}), CheckFailure);
}

TEST_CASE("Kendall's tau: pairs in the published order less pairs in the other, over all pairs of a job",
          "[validation]") {
  // Published 1 < 2 < 3; predicted 1 < 3 < 2: of three pairs two agree and one does not.
  CHECK(*kendall_tau({{"x", 1, 10}, {"x", 2, 30}, {"x", 3, 20}}) == Approx(1.0 / 3));
  CHECK(*kendall_tau({{"x", 1, 3}, {"x", 2, 2}, {"x", 3, 1}}) == -1);
  // A tie is neither: two of three pairs are ordered by the prediction.
  CHECK(*kendall_tau({{"x", 1, 1}, {"x", 2, 1}, {"x", 3, 2}}) == Approx(2 / std::sqrt(6.0)));
  // Plans of different jobs are not compared: each job has one pair, one right and one wrong.
  CHECK(*kendall_tau({{"x", 1, 1}, {"x", 2, 2}, {"y", 1, 200}, {"y", 2, 100}}) == 0);
  CHECK_FALSE(kendall_tau({{"x", 1, 1}, {"y", 2, 2}}));
}

}  // namespace
}  // namespace hdpsim
