#include "calib/fit/impl/chart.h"

#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

TEST_CASE("a chart marks samples, the fit and where both meet", "[fit]") {
  const std::string text =
      chart({{1024, 0, 10}, {4096, 10, 10}, {65536, 5, 10}},
            {.title = "rates", .size_unit = "tokens", .value_unit = "GB/s", .columns = 43, .rows = 3});
  CHECK(text == R"(rates   o sample  * fit  @ both
        10 |*         @                   *
           |                              o
         0 |o
      GB/s +1Ki                 64Ki tokens
)");
  CHECK(chart({}, {}).empty());
}

TEST_CASE("a box plot shows where the errors lie, and arrows what lies outside", "[fit]") {
  CHECK(box_plot({-0.05, -0.02, 0, 0.02, 0.05}, 0.1, 21) == "     ---==|==---     ");
  CHECK(box_plot({-0.2, -0.02, 0, 0.02, 0.3}, 0.1, 21) == "<-------==|==------->");
  CHECK(box_plot({}, 0.1, 5) == "  |  ");
}

TEST_CASE("sizes are told in powers of 1,024", "[fit]") {
  CHECK(binary_text(100) == "100");
  CHECK(binary_text(4096) == "4Ki");
  CHECK(binary_text(3.0 * 1024 * 1024) == "3Mi");
}

}  // namespace
}  // namespace hdpsim::calib
