#include "sim/trace/halves.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/trace/length_distribution.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

std::optional<Halves> halves_of(const std::vector<std::int64_t>& lengths) {
  HalvesTally tally;
  for (const std::int64_t length : lengths) tally.add(length);
  return tally.halves();
}

std::vector<std::int64_t> drawn(std::size_t count, std::uint64_t seed) {
  const auto lengths = make_distribution(Lognormal{.mu = 7, .sigma = 1.8, .min = 1, .max = 1 << 21});
  RandomStream random(seed, "halves");
  std::vector<std::int64_t> all;
  while (all.size() < count) all.push_back(lengths->draw(random));
  return all;
}

}  // namespace

TEST_CASE("halves are those of the file, and few documents have none", "[trace]") {
  std::vector<std::int64_t> lengths(8, 100);
  lengths.resize(16, 300);
  const auto halves = halves_of(lengths);
  REQUIRE(halves);
  CHECK(halves->first_mean == 100);
  CHECK(halves->second_mean == 300);
  CHECK(halves->differ);
  CHECK(halves_note(*halves) == "the first half of the documents has 100 tokens each on average, the second half 300");
  lengths.pop_back();
  CHECK_FALSE(halves_of(lengths));
}

TEST_CASE("halves of a large file are right to a 256th of it", "[trace]") {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 1; i <= 100'000; ++i) lengths.push_back(i);
  const auto halves = halves_of(lengths);
  REQUIRE(halves);
  CHECK(std::abs(halves->first_mean - 25'000) < 100'000 / 256.0);
  CHECK(std::abs(halves->second_mean - 75'000) < 100'000 / 256.0);
  CHECK(halves->differ);
}

TEST_CASE("long-tailed lengths in random order do not differ, sorted or grouped ones do", "[trace]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::vector<std::int64_t> lengths = drawn(16 + 20 * seed, seed);
    CHECK_FALSE(halves_of(lengths)->differ);
    std::sort(lengths.begin(), lengths.end());
    if (lengths.size() >= 100) CHECK(halves_of(lengths)->differ);
  }
  // A second source, of documents three times as long, behind the first.
  std::vector<std::int64_t> grouped = drawn(2000, 1);
  for (std::size_t i = 1000; i < grouped.size(); ++i) grouped[i] *= 3;
  CHECK(halves_of(grouped)->differ);
}

}  // namespace hdpsim
