#include "sim/base/check.h"

#include <string>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a broken invariant tells where it stands, what was asked and the values", "[check]") {
  const int events = 3;
  const int line = __LINE__ + 2;
  try {
    HDPSIM_CHECK(events < 2, "{} events at {} ps", events, 17);
    FAIL("nothing was thrown");
  } catch (const CheckFailure& failure) {
    CHECK(failure.what() == fmt::format("{}:{}: check failed: events < 2: 3 events at 17 ps", __FILE__, line));
  }
}

TEST_CASE("of an invariant that holds not even the values are formatted", "[check]") {
  int formatted = 0;
  HDPSIM_CHECK(true, "{}", ++formatted);
  CHECK(formatted == 0);
}

TEST_CASE("the condition is evaluated once", "[check]") {
  int evaluated = 0;
  HDPSIM_CHECK(++evaluated > 0, "evaluated {} times", evaluated);
  CHECK(evaluated == 1);
}

TEST_CASE("a check is one statement, also without braces around it", "[check]") {
  bool otherwise = false;
  if (otherwise)
    HDPSIM_CHECK(false, "never reached");
  else
    otherwise = true;
  CHECK(otherwise);
}

}  // namespace
}  // namespace hdpsim
