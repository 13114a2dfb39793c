#include "sim/base/random.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a stream is its seed, its consumer and its index", "[random]") {
  RandomStream stream(1, "lengths", 3);
  RandomStream same(1, "lengths", 3);
  CHECK(stream.next() == same.next());
  CHECK(RandomStream(1, "lengths", 3).next() != RandomStream(1, "lengths", 4).next());
  CHECK(RandomStream(1, "lengths", 3).next() != RandomStream(1, "jitter", 3).next());
  CHECK(RandomStream(1, "lengths", 3).next() != RandomStream(2, "lengths", 3).next());
}

// Means of n draws lie within five standard errors of the truth; the seeds are fixed, so a pass stays a pass.
constexpr int draws = 100'000;

TEST_CASE("uniform draws lie in [0, 1) with the mean in the middle", "[random]") {
  RandomStream random(7, "uniform test");
  double sum = 0;
  for (int i = 0; i < draws; ++i) {
    const double u = random.uniform();
    REQUIRE((u >= 0 && u < 1));
    sum += u;
  }
  CHECK(std::abs(sum / draws - 0.5) < 5 * std::sqrt(1.0 / 12 / draws));
}

TEST_CASE("every number below a bound is equally likely", "[random]") {
  RandomStream random(7, "below test");
  int counts[3] = {};
  for (int i = 0; i < draws; ++i) ++counts[random.below(3)];
  for (const int count : counts) CHECK(std::abs(count - draws / 3.0) < 5 * std::sqrt(draws * 2.0 / 9));
}

TEST_CASE("normal draws have mean 0 and variance 1", "[random]") {
  RandomStream random(7, "normal test");
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / draws) < 5 / std::sqrt(draws));
  CHECK(std::abs(squares / draws - 1) < 5 * std::sqrt(2.0 / draws));
}

}  // namespace
}  // namespace hdpsim
