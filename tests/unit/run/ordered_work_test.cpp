#include "sim/run/ordered_work.h"

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Taken = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Later numbers are ready earlier, so that order does not come by itself.
std::int64_t slow_square(std::int64_t number) {
  std::this_thread::sleep_for(std::chrono::microseconds(200 * (7 - number % 7)));
  return number * number;
}

Taken squares(std::int64_t first, std::int64_t end) {
  Taken expected;
  for (std::int64_t number = first; number < end; ++number) expected.emplace_back(number, number * number);
  return expected;
}

TEST_CASE("results are taken in the order of their numbers, whatever the number of threads", "[ordered_work]") {
  for (const std::size_t jobs : {1, 2, 5}) {
    CAPTURE(jobs);
    Taken taken;
    CHECK(run_in_order(
        {.first = 3, .end = 60, .jobs = jobs}, [] { return slow_square; },
        [&](std::int64_t number, std::int64_t square) { taken.emplace_back(number, square); }));
    CHECK(taken == squares(3, 60));
  }
}

TEST_CASE("no work is done at once, and each thread makes one worker", "[ordered_work]") {
  std::atomic<int> workers = 0;
  const auto make = [&] {
    ++workers;
    return slow_square;
  };
  CHECK(run_in_order({.first = 5, .end = 5, .jobs = 4}, make, [](std::int64_t, std::int64_t) { FAIL("no work"); }));
  workers = 0;
  CHECK(run_in_order({.first = 0, .end = 40, .jobs = 4}, make, [](std::int64_t, std::int64_t) {}));
  CHECK(workers == 4);
}

TEST_CASE("threads do not run away from what is taken", "[ordered_work]") {
  constexpr std::int64_t jobs = 3;
  std::atomic<std::int64_t> done = 0;
  std::int64_t farthest = 0;
  const auto make = [&] {
    return [&](std::int64_t number) {
      if (number == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));  // all others wait for this one
      ++done;
      return number;
    };
  };
  CHECK(run_in_order({.first = 0, .end = 500, .jobs = jobs}, make,
                     [&](std::int64_t number, std::int64_t) { farthest = std::max(farthest, done.load() - number); }));
  CHECK(farthest <= 8 * jobs);
}

TEST_CASE("what was taken when the work was stopped is a beginning of the results", "[ordered_work]") {
  std::atomic<int> asked = 0;
  Taken taken;
  CHECK_FALSE(run_in_order(
      {.first = 0, .end = 100, .jobs = 3, .stop = [&] { return ++asked > 20; }}, [] { return slow_square; },
      [&](std::int64_t number, std::int64_t square) { taken.emplace_back(number, square); }));
  CHECK(taken == squares(0, std::ssize(taken)));
  CHECK(std::ssize(taken) == 20);
}

TEST_CASE("what a worker throws, or whoever takes its results, reaches the caller", "[ordered_work]") {
  const auto failing = [] {
    return [](std::int64_t number) {
      if (number == 11) throw std::runtime_error("no eleven");
      return number;
    };
  };
  std::int64_t last = -1;
  CHECK_THROWS_WITH(run_in_order({.first = 0, .end = 100, .jobs = 4}, failing,
                                 [&](std::int64_t number, std::int64_t) { last = number; }),
                    "no eleven");
  CHECK(last < 11);
  CHECK_THROWS_WITH(run_in_order(
                        {.first = 0, .end = 100, .jobs = 4}, [] { return slow_square; },
                        [](std::int64_t number, std::int64_t) {
                          if (number == 5) throw std::runtime_error("enough");
                        }),
                    "enough");
}

}  // namespace
}  // namespace hdpsim
