#include "sim/base/units.h"

#include "sim/base/check.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a transfer time is rounded up to the next picosecond, never down", "[units]") {
  // 1 byte at 3 B/s: a third of 10^12 ps is 333,333,333,333 and a third.
  CHECK(Bytes(1) / Bandwidth::bytes_per_second(3) == Duration::picoseconds(333'333'333'334));
  CHECK(Bytes(3) / Bandwidth::bytes_per_second(3) == 1_s);
}

TEST_CASE("a byte on a very fast link still takes time", "[units]") {
  // 14.4 Tbit/s are 1.8e12 B/s: a byte takes 0.56 ps.
  CHECK(Bytes(1) / (400_Gbps * 36) == 1_ps);
}

TEST_CASE("products beyond 64 bits are exact", "[units]") {
  // 4 TB x 10^12 ps/s is far beyond 2^63.
  CHECK(Bytes(4'000'000'000'000) / 50_GBps == 80_s);
}

TEST_CASE("no bandwidth and times beyond the clock are bugs, not wrong numbers", "[units]") {
  CHECK_THROWS_AS(Bytes(1) / Bandwidth{}, CheckFailure);
  CHECK_THROWS_AS(Bytes(INT64_MAX) / Bandwidth::bytes_per_second(1), CheckFailure);
  CHECK_THROWS_AS(Flops(1) / FlopRate{}, CheckFailure);
  CHECK_THROWS_AS(Duration::seconds(1e8), CheckFailure);
}

TEST_CASE("a gigabyte a second is 10^9 bytes and eight gigabits", "[units]") {
  CHECK((1_GBps).bytes_per_second() == 1'000'000'000);
  CHECK(8_Gbps == 1_GBps);
  CHECK(1_GiB == Bytes(1'073'741'824));
}

}  // namespace
}  // namespace hdpsim
