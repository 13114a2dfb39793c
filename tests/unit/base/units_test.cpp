#include "sim/base/units.h"

#include <cmath>
#include <limits>

#include "sim/base/check.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a transfer time is rounded up to the next picosecond, never down", "[units]") {
  // 1 byte at 3 B/s: a third of 10^12 ps is 333,333,333,333 and a third.
  CHECK(Bytes(1) / Bandwidth::bytes_per_second(3) == Duration::picoseconds(333'333'333'334));
  CHECK(Bytes(3) / Bandwidth::bytes_per_second(3) == 1_s);
}

TEST_CASE("products beyond 64 bits are exact", "[units]") {
  // 4 TB x 10^12 ps/s is far beyond 2^63.
  CHECK(Bytes(4'000'000'000'000) / 50_GBps == 80_s);
}

TEST_CASE("rounding up reaches the last picosecond of the clock, and not one further", "[units]") {
  // At 10^12 B/s a byte takes 1 ps: 2^63 - 1 bytes fill the clock, a slightly slower link overflows it.
  CHECK(Bytes(INT64_MAX) / 1000_GBps == Duration::max());
  CHECK_THROWS_AS(Bytes(INT64_MAX) / Bandwidth::bytes_per_second(999'999'999'999), QuantityOverflow);
}

TEST_CASE("a multiple of the rate is exact, one byte more takes what a byte takes, rounded up", "[units]") {
  for (const std::int64_t rate : {1'800'000'000'000, 900'000'000'007, 50'000'000'000, 25'000'000'001}) {
    CAPTURE(rate);
    const Bandwidth bandwidth = Bandwidth::bytes_per_second(rate);
    const std::int64_t one_byte = 1'000'000'000'000 / rate + (1'000'000'000'000 % rate == 0 ? 0 : 1);
    CHECK(Bytes(rate) / bandwidth == 1_s);
    CHECK(Bytes(rate + 1) / bandwidth == 1_s + Duration::picoseconds(one_byte));
    CHECK(Bytes(rate - 1) / bandwidth <= 1_s);
    CHECK(Bytes(0) / bandwidth == 0_ps);
  }
}

TEST_CASE("terabit links lose nothing to a whole number of picoseconds a byte", "[units]") {
  // 14.4 Tbit/s are 1.8e12 B/s: 1.8 GB take a millisecond; at 1 ps a byte they would take 1.8 ms, at 0 ps none.
  CHECK(Bytes(1'800'000'000) / (400_Gbps * 36) == 1_ms);
  // 7.2 Tbit/s are 0.9e12 B/s: 0.9 GB take a millisecond, not the 0.9 ms of 1 ps a byte.
  CHECK(Bytes(900'000'000) / (400_Gbps * 18) == 1_ms);
}

TEST_CASE("a negative amount, too, is rounded towards the later time", "[units]") {
  // -1/3 s is -333,333,333,333 ps and a third: the next picosecond above is -333,333,333,333.
  CHECK(Bytes(-1) / Bandwidth::bytes_per_second(3) == Duration::picoseconds(-333'333'333'333));
  CHECK_THROWS_AS(Bytes(INT64_MIN) / Bandwidth::bytes_per_second(1), QuantityOverflow);
}

TEST_CASE("a negative bandwidth and a negative speed are bugs", "[units]") {
  CHECK_THROWS_AS(Bytes(1) / Bandwidth::bytes_per_second(-1), CheckFailure);
  CHECK_THROWS_AS(Flops(1) / FlopRate(-1), CheckFailure);
}

TEST_CASE("doubles are rounded once, to the nearest, and must fit", "[units]") {
  CHECK(Duration::seconds(1.4e-12) == 1_ps);
  CHECK(Duration::seconds(1.6e-12) == 2_ps);
  CHECK(Duration::seconds(-1.6e-12) == Duration::picoseconds(-2));
  CHECK((10_ps).scaled(0.26) == 3_ps);
  CHECK(Bytes(10).scaled(0.24) == 2_B);
  CHECK((1_GBps).scaled(1.5) == Bandwidth::bytes_per_second(1'500'000'000));
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(Duration::seconds(not_a_number), CheckFailure);
  CHECK_THROWS_AS((1_s).scaled(not_a_number), CheckFailure);
  CHECK_THROWS_AS((1_B).scaled(not_a_number), CheckFailure);
  CHECK_THROWS_AS((1_GBps).scaled(not_a_number), CheckFailure);
  for (const double factor : {infinity, -infinity, 1e20, -1e20}) {
    CAPTURE(factor);
    CHECK_THROWS_AS(Duration::seconds(factor), QuantityOverflow);
    CHECK_THROWS_AS((1_s).scaled(factor), QuantityOverflow);
    CHECK_THROWS_AS((1_B).scaled(factor), QuantityOverflow);
    CHECK_THROWS_AS((1_GBps).scaled(factor), QuantityOverflow);
  }
}

template <class Quantity>
void check_borders(Quantity least, Quantity most, Quantity one) {
  const Quantity zero{};
  CHECK(most - one + one == most);
  CHECK(least + one - one == least);
  CHECK(most + zero == most);
  CHECK(most + least == zero - one);
  CHECK(most * 1 == most);
  CHECK(most * -1 - one == least);
  CHECK((least + one) * -1 == most);
  CHECK_THROWS_AS(most + one, QuantityOverflow);
  CHECK_THROWS_AS(least - one, QuantityOverflow);
  CHECK_THROWS_AS(zero - least, QuantityOverflow);
  CHECK_THROWS_AS(least * -1, QuantityOverflow);
  CHECK_THROWS_AS(most * 2, QuantityOverflow);
  CHECK_THROWS_AS(2 * most, QuantityOverflow);
  CHECK_THROWS_AS(least * 2, QuantityOverflow);
  Quantity sum = most;
  CHECK_THROWS_AS(sum += one, QuantityOverflow);
  CHECK(sum == most);  // what is refused changes nothing
}

TEST_CASE("sums, differences and products reach both ends of 64 bits, and not one further", "[units]") {
  check_borders(Duration::picoseconds(INT64_MIN), Duration::max(), 1_ps);
  check_borders(Bytes(INT64_MIN), Bytes(INT64_MAX), 1_B);
}

TEST_CASE("rates are added and multiplied up to the end of 64 bits, and not one further", "[units]") {
  const Bandwidth most = Bandwidth::bytes_per_second(INT64_MAX);
  const Bandwidth one = Bandwidth::bytes_per_second(1);
  CHECK(Bandwidth::bytes_per_second(INT64_MAX - 1) + one == most);
  CHECK(one * INT64_MAX == most);
  CHECK_THROWS_AS(most + one, QuantityOverflow);
  CHECK_THROWS_AS(most * 2, QuantityOverflow);
}

TEST_CASE("a clock stops at its last picosecond instead of beginning anew", "[units]") {
  Instant last = Instant::at(Duration::max());
  CHECK(Instant::at(Duration::max() - 1_ps) + 1_ps == last);
  CHECK_THROWS_AS(last + 1_ps, QuantityOverflow);
  CHECK_THROWS_AS(last += 1_ps, QuantityOverflow);
  CHECK_THROWS_AS(last - Instant::at(Duration::picoseconds(-1)), QuantityOverflow);
  // 2^63 ps are 106.75 days.
  CHECK(106 * 24 * 3600_s < Duration::max());
  CHECK_THROWS_AS(107 * 24 * 3600_s, QuantityOverflow);
}

TEST_CASE("scaling rounds to what 64 bits hold, or is refused", "[units]") {
  CHECK(Duration::max().scaled(0.99) < Duration::max());
  CHECK_THROWS_AS(Duration::max().scaled(1.01), QuantityOverflow);
  CHECK_THROWS_AS(Bytes(INT64_MAX).scaled(-1.01), QuantityOverflow);
}

TEST_CASE("scaling rounds halves away from zero, and all else to the nearest", "[units]") {
  const double near_half = std::nextafter(0.5, 0);
  for (const double value : {0.0, near_half, 0.5, 1.5, 2.5, 4503599627370495.5, 4503599627370497.0, 9.1e18}) {
    for (const double factor : {value, -value}) {
      CHECK((1_ps).scaled(factor) == Duration::picoseconds(std::llround(factor)));
      CHECK((1_B).scaled(std::nextafter(factor, 0)) == Bytes(std::llround(std::nextafter(factor, 0))));
    }
  }
}

TEST_CASE("checked arithmetic is arithmetic of constants, too", "[units]") {
  static_assert(1_s + 2_s - 4_s == 1_s * -1);
  static_assert((2_GBps * 3).bytes_per_second() == 6'000'000'000);
  static_assert(Instant::at(3_us) + 2_us - Instant::at(1_us) == 4_us);
}

TEST_CASE("work over speed is a time, rounded to the nearest picosecond", "[units]") {
  CHECK(Flops(312e12) / 312_TFLOPs == 1_s);
  CHECK(Flops(5) / 3_TFLOPs == 2_ps);  // 1.67
  CHECK(Flops(0) / 3_TFLOPs == 0_ps);
  CHECK_THROWS_AS(Flops(1e30) / FlopRate(1), QuantityOverflow);
}

TEST_CASE("instants differ by durations and move by durations", "[units]") {
  const Instant start = Instant::at(3_us);
  Instant later = start + 2_us;
  CHECK(later - start == 2_us);
  CHECK(start < later);
  later += 1_ns;
  CHECK(later.since_start() == 5001_ns);
}

TEST_CASE("the literals are the units that they name", "[units]") {
  CHECK(1_s == 1000_ms);
  CHECK(1_ms == 1000_us);
  CHECK(1_us == 1000_ns);
  CHECK(1_ns == 1000_ps);
  CHECK(1_GiB == 1024_MiB);
  CHECK(1_MiB == 1024_KiB);
  CHECK(1_KiB == 1024_B);
  CHECK((1_s).seconds() == Approx(1));
  CHECK(Bytes(2'500'000'000).gigabytes() == Approx(2.5));
  CHECK((50_GBps).gigabytes_per_second() == Approx(50));
}

}  // namespace
}  // namespace hdpsim
