#include "sim/tune/front.h"

#include <algorithm>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Indices = std::vector<std::size_t>;

TEST_CASE("the front holds what nothing else beats in all figures together", "[tune]") {
  CHECK(pareto_front({}).empty());
  CHECK(pareto_front({{1, 9, 1}, {2, 5, 1}, {3, 6, 1}, {3, 5, 1}, {4, 1, 1}}) == Indices{0, 1, 4});
  CHECK(pareto_front({{1, 9, 8}, {1, 9, 4}, {2, 9, 2}}) == Indices{1, 2});
}

TEST_CASE("of equal points the first is on the front", "[tune]") {
  CHECK(pareto_front({{2, 2, 2}, {1, 1, 1}, {1, 1, 1}}) == Indices{1});
}

TEST_CASE("the front is the one that comparing all pairs gives", "[tune]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "front");
    std::vector<FrontPoint> points(random.below(30));
    for (FrontPoint& point : points) {
      for (double& figure : point) figure = static_cast<double>(random.below(4));
    }
    const auto dominates = [&](std::size_t a, std::size_t b) {
      const bool no_larger =
          points[a][0] <= points[b][0] && points[a][1] <= points[b][1] && points[a][2] <= points[b][2];
      return no_larger && (points[a] != points[b] || a < b);
    };
    Indices expected;
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (std::size_t j = 0; j < points.size(); ++j) beaten = beaten || (i != j && dominates(j, i));
      if (!beaten) expected.push_back(i);
    }
    CHECK(pareto_front(points) == expected);
  }
}

}  // namespace
}  // namespace hdpsim
