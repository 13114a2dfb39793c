#include "sim/base/quantity_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("counts take powers of 1024 and of 1000", "[quantity_text]") {
  CHECK(parse_count("256Ki").value == 256 * 1024);
  CHECK(parse_count("2Mi").value == 2 * 1024 * 1024);
  CHECK(parse_count("32k").value == 32'000);
  CHECK(parse_count(" 17 ").value == 17);
  CHECK(parse_count("1e3").value == 1000);
}

TEST_CASE("printed quantities have three digits and a fitting unit", "[quantity_text]") {
  CHECK(duration_text(1523_us) == "1.52 ms");
  CHECK(duration_text(25500_ms) == "25.5 s");
  CHECK(duration_text(12_ps) == "12 ps");
  CHECK(bytes_text(Bytes(16'777'216)) == "16.8 MB");
  CHECK(count_text(256 * 1024) == "256Ki");
  CHECK(count_text(1000) == "1000");
  CHECK(count_text(0) == "0");
}

template <class T>
std::string told(const Parsed<T>& parsed) {
  return parsed.value ? "taken" : parsed.error + " | " + parsed.help;
}

TEST_CASE("counts use all 64 bits, exactly, with either sign", "[quantity_text]") {
  CHECK(parse_count("9223372036854775807").value == INT64_MAX);
  CHECK(parse_count("-9223372036854775808").value == INT64_MIN);
  CHECK_FALSE(parse_count("9223372036854775808").value);
  CHECK(parse_count("9007199254740993").value == 9'007'199'254'740'993);  // 2^53 + 1: no double
  CHECK(parse_count("-4Ki").value == -4096);
  CHECK(parse_count("7Gi").value == std::int64_t{7} << 30);
  CHECK(parse_count("1Ti").value == std::int64_t{1} << 40);
  CHECK(parse_count("100M").value == 100'000'000);
  CHECK(parse_count("1.5T").value == 1'500'000'000'000);
  CHECK(parse_count("3G").value == 3'000'000'000);
  CHECK(told(parse_count("5 K")) == "\"5 K\" can be read in two ways | write 5Ki (x 1024) or 5k (x 1000)");
}

TEST_CASE("decimals of a count are taken where they make a whole number", "[quantity_text]") {
  CHECK(parse_count("1.5Ki").value == 1536);
  CHECK(parse_count("2.0").value == 2);
  CHECK_FALSE(parse_count("0.1Ki").value);      // 102.4
  CHECK_FALSE(parse_count("1.0005k").value);    // 1000.5
  CHECK_FALSE(parse_count("1.00001Mi").value);  // 1048586.48576
  // Every thousandth of a k is whole, although most thousandths are no doubles: 1.005 x 1000 is 1004.9999999999999.
  for (std::int64_t count = 0; count < 20'000; ++count) {
    const std::string text = fmt::format("{}.{:03}k", count / 1000, count % 1000);
    if (parse_count(text).value != count) FAIL(text);
  }
}

TEST_CASE("what is no count is told with the ways to write one", "[quantity_text]") {
  const std::string help = " | write a whole number such as 4096, 256Ki (x 1024) or 32k (x 1000)";
  for (const char* text : {"", "many", "nan", "inf", "-inf", "1e400", "+5", "Ki"}) {
    CHECK(told(parse_count(text)) == fmt::format("\"{}\" is not a whole number{}", text, help));
  }
  for (const char* text : {"1.5", "12x", "5Kix", "5 Ki 6", "0x10", "1e30", "8589934592Gi", "1e19", "5 ki"}) {
    CHECK(told(parse_count(text)) == fmt::format("\"{}\" is not a whole number within 64 bits{}", text, help));
  }
}

TEST_CASE("a gigabyte a second is 1e9 bytes a second, a gigabit an eighth of it", "[quantity_text]") {
  CHECK(parse_bandwidth("1 GB/s").value == Bandwidth::bytes_per_second(1'000'000'000));
  CHECK(parse_bandwidth("1 Gbit/s").value == Bandwidth::bytes_per_second(125'000'000));
  CHECK(parse_bandwidth("1 B/s").value == Bandwidth::bytes_per_second(1));
  CHECK(parse_bandwidth("2 MB/s").value == Bandwidth::bytes_per_second(2'000'000));
  CHECK(parse_bandwidth("8 Mbit/s").value == Bandwidth::bytes_per_second(1'000'000));
  CHECK(parse_bandwidth("14.4 Tbit/s").value == Bandwidth::bytes_per_second(1'800'000'000'000));
  CHECK(parse_bandwidth("\t50GB/s ").value == 50_GBps);
}

TEST_CASE("what is no bandwidth is told with the ways to write one", "[quantity_text]") {
  for (const char* text :
       {"", " ", "fast", "GB/s", "nan", "nan GB/s", "inf GB/s", "-inf GB/s", "1e400 GB/s", "+5 GB/s"}) {
    CHECK(told(parse_bandwidth(text)) ==
          fmt::format("\"{}\" is not a bandwidth | write 5 GB/s (bytes) or 5 Gbit/s (bits)", text));
  }
  CHECK(told(parse_bandwidth("12.5")) ==
        "\"12.5\" has no unit | did you mean 12.5 GB/s (bytes) or 12.5 Gbit/s (bits)?");
  for (const char* unit : {"GB", "GiB/s", "gb/s", "GB/s or so"}) {
    CHECK(told(parse_bandwidth(fmt::format("7 {}", unit))) ==
          fmt::format("\"7 {0}\" has the unknown unit '{0}' | write 7 GB/s (bytes) or 7 Gbit/s (bits)", unit));
  }
  CHECK(told(parse_bandwidth("1e30 GB/s")) == "\"1e30 GB/s\" is too large | ");
}

TEST_CASE("every unit of time is what it says, and a time without one is asked back", "[quantity_text]") {
  CHECK(parse_duration("7 ps").value == 7_ps);
  CHECK(parse_duration("7 us").value == 7_us);
  CHECK(parse_duration("7 µs").value == 7_us);
  CHECK(parse_duration("0.25 s").value == 250_ms);
  CHECK(parse_duration("10 min").value == 600_s);
  CHECK(parse_duration("2 h").value == 7200_s);
  CHECK(parse_duration("-3 us").value == 0_ps - 3_us);
  CHECK(parse_duration("0.6 ps").value == 1_ps);  // the nearest picosecond
  CHECK(told(parse_duration("5")) == "\"5\" has no unit | did you mean 5 us, 5 ms or 5 s?");
  CHECK(told(parse_duration("soon")) == "\"soon\" is not a time | write 5 us, 5 ms or 5 s");
  CHECK(told(parse_duration("5 years")) == "\"5 years\" has the unknown unit 'years' | write 5 us, 5 ms or 5 s");
  // The clock holds 9.22e18 ps, which are 2562 h.
  CHECK(parse_duration("2550 h").value == 9'180'000_s);
  CHECK(told(parse_duration("2563 h")) == "\"2563 h\" is too large | ");
}

TEST_CASE("every unit of data is what it says, and data without one is asked back", "[quantity_text]") {
  CHECK(parse_bytes("3 B").value == 3_B);
  CHECK(parse_bytes("3 kB").value == 3000_B);
  CHECK(parse_bytes("3 MB").value == 3'000'000_B);
  CHECK(parse_bytes("3 GB").value == 3'000'000'000_B);
  CHECK(parse_bytes("3 TB").value == 3'000'000'000'000_B);
  CHECK(parse_bytes("3 KiB").value == 3_KiB);
  CHECK(parse_bytes("3 GiB").value == 3_GiB);
  CHECK(parse_bytes("3 TiB").value == 1024 * 3_GiB);
  CHECK(told(parse_bytes("80")) == "\"80\" has no unit | did you mean 80 GB (10^9 bytes) or 80 GiB (2^30 bytes)?");
  CHECK(told(parse_bytes("all")) == "\"all\" is not an amount of data | write 5 GB (10^9 bytes) or 5 GiB (2^30 bytes)");
  CHECK(told(parse_bytes("80 Gbit")) ==
        "\"80 Gbit\" has the unknown unit 'Gbit' | write 80 GB (10^9 bytes) or 80 GiB (2^30 bytes)");
  CHECK(told(parse_bytes("9300000 TB")) == "\"9300000 TB\" is too large | ");  // 9.3e18 bytes, 2^63 is 9.22e18
}

TEST_CASE("every unit of speed is what it says, and a speed without one is asked back", "[quantity_text]") {
  CHECK(parse_flop_rate("90 GFLOP/s").value == FlopRate(90e9));
  CHECK(parse_flop_rate("312 TFLOP/s").value == 312_TFLOPs);
  CHECK(parse_flop_rate("1.5 PFLOP/s").value == 1500_TFLOPs);
  CHECK(told(parse_flop_rate("312")) == "\"312\" has no unit | did you mean 312 TFLOP/s?");
  CHECK(told(parse_flop_rate("312 TFLOPS")) == "\"312 TFLOPS\" has the unknown unit 'TFLOPS' | write 312 TFLOP/s");
  CHECK(told(parse_flop_rate("inf TFLOP/s")) == "\"inf TFLOP/s\" is not an arithmetic speed | write 5 TFLOP/s");
}

TEST_CASE("braces and percent signs of the user are text, not formats", "[quantity_text]") {
  CHECK(told(parse_bandwidth("{0} {}")) == "\"{0} {}\" is not a bandwidth | write 5 GB/s (bytes) or 5 Gbit/s (bits)");
  CHECK(told(parse_flop_rate("5 {}%s")) == "\"5 {}%s\" has the unknown unit '{}%s' | write 5 TFLOP/s");
}

TEST_CASE("three digits stay three digits where rounding reaches the next unit", "[quantity_text]") {
  CHECK(duration_text(Duration::picoseconds(999'499'999)) == "999 us");
  CHECK(duration_text(Duration::picoseconds(999'500'000)) == "1.00 ms");
  CHECK(duration_text(Duration::picoseconds(9'994'999)) == "9.99 us");
  CHECK(duration_text(Duration::picoseconds(9'995'000)) == "10.0 us");
  CHECK(duration_text(Duration::picoseconds(99'949'999)) == "99.9 us");
  CHECK(duration_text(Duration::picoseconds(99'950'000)) == "100 us");
  CHECK(duration_text(999_ps) == "999 ps");
  CHECK(duration_text(1_ns) == "1.00 ns");
  CHECK(bytes_text(Bytes(999)) == "999 B");
  CHECK(bytes_text(Bytes(1000)) == "1.00 kB");
  CHECK(bytes_text(Bytes(999'499)) == "999 kB");
  CHECK(bytes_text(Bytes(999'500)) == "1.00 MB");
  CHECK(bytes_text(1_GiB) == "1.07 GB");
  CHECK(bytes_text(Bytes(80'000'000'000'000)) == "80.0 TB");
}

TEST_CASE("zero and negative quantities are printed by their size", "[quantity_text]") {
  CHECK(duration_text(0_ps) == "0 ps");
  CHECK(duration_text(0_ps - 512_ms) == "-512 ms");
  CHECK(duration_text(0_ps - 25500_us) == "-25.5 ms");
  CHECK(bytes_text(0_B) == "0 B");
  CHECK(bytes_text(Bytes(-16'777'216)) == "-16.8 MB");
}

TEST_CASE("a count is printed in the largest power of 1024 that divides it, and reads back", "[quantity_text]") {
  CHECK(count_text(1024) == "1Ki");
  CHECK(count_text(1025) == "1025");
  CHECK(count_text(1536) == "1536");
  CHECK(count_text(3 << 20) == "3Mi");
  CHECK(count_text((3 << 20) + 1024) == "3073Ki");
  CHECK(count_text(std::int64_t{5} << 30) == "5Gi");
  CHECK(count_text(std::int64_t{1} << 40) == "1024Gi");
  CHECK(count_text(-2048) == "-2Ki");
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{INT64_MAX}, std::int64_t{-7}, std::int64_t{1} << 50}) {
    CHECK(parse_count(count_text(count)).value == count);
  }
}

}  // namespace
}  // namespace hdpsim
