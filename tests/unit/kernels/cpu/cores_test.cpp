#include "kernels/cpu/cores.h"

#include <thread>

#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

Seat seat(std::uint64_t host, unsigned long long cores) {
  return {host, CoreSet(cores)};
}

TEST_CASE("threads that may run anywhere share all cores evenly, and none has more than one", "[cores]") {
  CHECK(least_core_share({seat(1, 0b11), seat(1, 0b11), seat(1, 0b11), seat(1, 0b11)}) == Approx(2.0 / 4));
  CHECK(least_core_share({seat(1, 0b1111), seat(1, 0b1111)}) == 1);
}

TEST_CASE("threads that are bound to cores of their own share nothing, nor do hosts", "[cores]") {
  CHECK(least_core_share({seat(1, 0b01), seat(1, 0b10)}) == 1);
  CHECK(least_core_share({seat(1, 0b01), seat(2, 0b01)}) == 1);
}

TEST_CASE("the worst seated counts", "[cores]") {
  // Core 0 has three users, core 1 two: the first two have 1/3 + 1/2, the third has 1/3.
  CHECK(least_core_share({seat(1, 0b11), seat(1, 0b11), seat(1, 0b01)}) == Approx(1.0 / 3));
}

TEST_CASE("who knows of no cores is not said to share them", "[cores]") {
  CHECK(least_core_share({}) == 1);
  CHECK(least_core_share({seat(1, 0), seat(1, 0b1)}) == 1);
}

TEST_CASE("a thread that stays on a core has that one alone", "[cores]") {
  const Seat before = own_seat();
  REQUIRE(before.cores.any());
  Seat bound;
  std::thread([&] {
    stay_on_core(0);
    bound = own_seat();
  }).join();
  CHECK(bound.host == before.host);
  CHECK(bound.cores.count() == 1);
  CHECK((bound.cores & before.cores) == bound.cores);
  CHECK(own_seat().cores == before.cores);
}

}  // namespace
}  // namespace hdpsim::kernels
