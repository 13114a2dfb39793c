#include "sim/document/reader.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// A map of one key, read within a range, and what is said about it.
template <class T>
std::string said(const std::string& value, RangeOf<T> range) {
  Diagnostics problems;
  const Value document = parse_document("f.yaml", "key: " + value + "\n", problems);
  MapReader map(document, "the map", problems);
  const std::optional<T> read = map.optional_in<T>("key", range);
  CHECK(read.has_value() == problems.empty());
  return problems.empty() ? "" : problems.sorted().front().message;
}

TEST_CASE("a quantity with a unit is read at both ends of its range and refused beyond them", "[reader]") {
  const Between<Duration> times{1_us, 2_s};
  CHECK(said<Duration>("1 us", times).empty());
  CHECK(said<Duration>("2 s", times).empty());
  CHECK(said<Duration>("999999 ps", times) == "'key' is 999999 ps, it must be from 1 us to 2 s");
  CHECK(said<Duration>("2.1 s", times) == "'key' is 2.1 s, it must be from 1 us to 2 s");
  CHECK(said<Bytes>("0 B", {1_B, 64_GiB}) == "'key' is 0 B, it must be from 1 B to 68.7195 GB");
  CHECK(said<Bandwidth>("1 kbit/s", limits::bandwidth).find("unknown unit") != std::string::npos);
  CHECK(said<Bandwidth>("1 B/s", limits::bandwidth) == "'key' is 1 B/s, it must be from 1 MB/s to 1000 TB/s");
  CHECK(said<FlopRate>("2000 PFLOP/s", limits::flop_rate) ==
        "'key' is 2000 PFLOP/s, it must be from 0.001 GFLOP/s to 1000 PFLOP/s");
}

TEST_CASE("limits of numbers are told in the units that counts are written in", "[reader]") {
  CHECK(said<std::int64_t>("0", {1, 1 << 30}) == "'key' is 0, it must be from 1 to 1Gi");
  CHECK(said<std::int64_t>("7", {1, 6}) == "'key' is 7, it must be from 1 to 6");
  CHECK(said<double>("1e13", {0.5, 1e12}) == "'key' is 1e13, it must be from 0.5 to 1e+12");
}

}  // namespace
}  // namespace hdpsim
