#include "sim/base/real_number.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <string>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

#ifdef __cpp_lib_to_chars

void check_like_from_chars(const std::string& text) {
  INFO("\"" << text << "\"");
  double known = 17;
  double read = 17;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), known);
  const RealNumberEnd found = real_number_by_strtod(text.data(), text.data() + text.size(), read);
  CHECK(found.ptr - text.data() == end - text.data());
  CHECK(found.ec == error);
  CHECK(std::bit_cast<std::uint64_t>(read) == std::bit_cast<std::uint64_t>(known));
}

TEST_CASE("strtod reads what from_chars reads: forms of numbers, and what is none", "[real_number]") {
  for (const char* text : {"",
                           "0",
                           "-0",
                           "1",
                           "-1.5",
                           "1.",
                           ".5",
                           "-.5",
                           ".",
                           "-",
                           "+1",
                           " 1",
                           "1 ",
                           "1e3",
                           "1E+3",
                           "1e-3",
                           "1e",
                           "1e+",
                           "e3",
                           "1.5.2",
                           "0x10",
                           "0x",
                           "--1",
                           "1,5",
                           "1Gi",
                           "2e3k",
                           "inf",
                           "-inf",
                           "nan",
                           "INF",
                           "i",
                           "n",
                           "infinity",
                           "1e308",
                           "1e309",
                           "-1e309",
                           "1e-330",
                           "0e999999",
                           "4.9e-324",
                           "2e-324",
                           "2.4703282292062328e-324",
                           "0.1",
                           "9007199254740993",
                           "179769313486231580793728971405301e276"}) {
    check_like_from_chars(text);
  }
}

TEST_CASE("strtod rounds as from_chars, digit by digit", "[real_number]") {
  RandomStream random(1, "real_number");
  constexpr int texts = 20'000;
  for (int i = 0; i < texts; ++i) {
    const double number = std::bit_cast<double>(random.next());
    if (!(number - number == 0)) continue;  // no infinities and NaNs
    check_like_from_chars(fmt::format("{}", number));
    check_like_from_chars(fmt::format("{:.{}e}", number, 1 + i % 24));
  }
}

#endif

}  // namespace
}  // namespace hdpsim
