#include "sim/base/quantity_text.h"

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

TEST_CASE("what is no whole number within 64 bits is refused", "[quantity_text]") {
  for (const char* text : {"", "abc", "1.5", "12x", "nan", "inf", "1e30", "99999999999999999999", "0x10", "9Gi9"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_count(text).value);
    CHECK_FALSE(parse_count(text).error.empty());
  }
}

TEST_CASE("a bandwidth without a unit is asked back", "[quantity_text]") {
  const auto parsed = parse_bandwidth("450");
  CHECK_FALSE(parsed.value);
  CHECK(parsed.error == "\"450\" has no unit");
  CHECK(parsed.help == "did you mean 450 GB/s (bytes) or 450 Gbit/s (bits)?");
}

TEST_CASE("bits and bytes differ by eight", "[quantity_text]") {
  CHECK(parse_bandwidth("400 Gbit/s").value == parse_bandwidth("50GB/s").value);
  CHECK(parse_bandwidth("1 TB/s").value == Bandwidth::bytes_per_second(1'000'000'000'000));
}

TEST_CASE("an unknown unit is named", "[quantity_text]") {
  CHECK(parse_duration("5 years").error == "\"5 years\" has the unknown unit 'years'");
  CHECK(parse_bytes("5 GiBB").error == "\"5 GiBB\" has the unknown unit 'GiBB'");
}

TEST_CASE("times and data take their usual units", "[quantity_text]") {
  CHECK(parse_duration("1.5 ms").value == 1500_us);
  CHECK(parse_duration("300ns").value == 300_ns);
  CHECK(parse_bytes("64 MiB").value == 64_MiB);
  CHECK(parse_bytes("80 GB").value == Bytes(80'000'000'000));
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

}  // namespace
}  // namespace hdpsim
