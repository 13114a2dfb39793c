#include "sim/base/random.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "sim/base/check.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// Means of n draws lie within five standard errors of the truth; the seeds are fixed, so a pass stays a pass.
constexpr int draws = 100'000;

std::vector<std::uint64_t> first_numbers(RandomStream random, std::size_t count = 64) {
  std::vector<std::uint64_t> numbers(count);
  for (auto& number : numbers) number = random.next();
  return numbers;
}

TEST_CASE("one seed, name and index give the same numbers again", "[random]") {
  CHECK(first_numbers({42, "lengths", 7}) == first_numbers({42, "lengths", 7}));
}

TEST_CASE("streams that differ in seed, name or index share no number", "[random]") {
  // 200 streams of 64 numbers each: two equal 64-bit numbers among 12,800 have a chance of 5e-12.
  std::set<std::uint64_t> numbers;
  const auto add = [&](const RandomStream& random) {
    for (const std::uint64_t number : first_numbers(random)) numbers.insert(number);
  };
  for (std::uint64_t i = 0; i < 50; ++i) {
    add({1, "lengths", i});
    add({1, "jitter", i});
    add({2, "lengths", i});
    add({i + 3, fmt::format("consumer {}", i)});
  }
  CHECK(numbers.size() == 200 * 64);
}

TEST_CASE("neighbouring indices are not correlated", "[random]") {
  // The product of two independent uniform numbers around 0 has mean 0 and standard deviation 1/12.
  double sum = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    sum += (RandomStream(5, "step", i).uniform() - 0.5) * (RandomStream(5, "step", i + 1).uniform() - 0.5);
  }
  CHECK(std::abs(sum / draws) < 5 / (12 * std::sqrt(draws)));
}

TEST_CASE("uniform draws fill each tenth of the interval alike", "[random]") {
  RandomStream random(11, "uniform test");
  std::array<int, 10> counts{};
  for (int i = 0; i < draws; ++i) {
    const double u = random.uniform();
    REQUIRE((u >= 0 && u < 1));
    ++counts[static_cast<std::size_t>(u * 10)];
  }
  // A tenth holds a binomial number of draws: mean n/10, variance n * 0.1 * 0.9.
  for (const int count : counts) CHECK(std::abs(count - draws / 10.0) < 5 * std::sqrt(draws * 0.09));
}

TEST_CASE("a bound far from a power of two shows no bias, where a plain remainder would", "[random]") {
  // 2^64 words modulo 3 * 2^62 give the lower third twice as often as the others: with chance 1/2. Without bias its
  // chance is 1/3, the variance 2/9.
  const std::uint64_t third = std::uint64_t{1} << 62;
  RandomStream random(13, "below test");
  int lower = 0;
  for (int i = 0; i < draws; ++i) {
    const std::uint64_t number = random.below(3 * third);
    REQUIRE(number < 3 * third);
    if (number < third) ++lower;
  }
  CHECK(std::abs(lower - draws / 3.0) < 5 * std::sqrt(draws * 2.0 / 9));
}

TEST_CASE("a bound of one has one number, a bound of zero none", "[random]") {
  RandomStream random(1, "below test");
  CHECK(random.below(1) == 0);
  CHECK_THROWS_AS(random.below(0), CheckFailure);
}

TEST_CASE("normal draws have mean 0, variance 1, no skew, kurtosis 3 and the usual share within one sigma",
          "[random]") {
  RandomStream random(17, "normal test");
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  double fourths = 0;
  int within = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
    if (std::abs(x) < 1) ++within;
  }
  CHECK(std::abs(sum / draws) < 5 / std::sqrt(draws));
  CHECK(std::abs(squares / draws - 1) < 5 * std::sqrt(2.0 / draws));
  // E x^6 = 15 is the variance of x^3; E x^8 - (E x^4)^2 = 105 - 9 = 96 is that of x^4.
  CHECK(std::abs(cubes / draws) < 5 * std::sqrt(15.0 / draws));
  CHECK(std::abs(fourths / draws - 3) < 5 * std::sqrt(96.0 / draws));
  const double share = std::erf(1 / std::sqrt(2.0));
  CHECK(std::abs(within - draws * share) < 5 * std::sqrt(draws * share * (1 - share)));
}

TEST_CASE("the two numbers of one polar draw are independent", "[random]") {
  RandomStream random(19, "normal test");
  double sum = 0;
  for (int i = 0; i < draws; ++i) {
    const double first = random.normal();
    sum += first * random.normal();
  }
  CHECK(std::abs(sum / draws) < 5 / std::sqrt(draws));  // the product of two standard normals has variance 1
}

}  // namespace
}  // namespace hdpsim
