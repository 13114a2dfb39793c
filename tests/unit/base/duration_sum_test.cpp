#include "sim/base/duration_sum.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a sum of durations goes beyond what one duration can hold", "[units]") {
  DurationSum sum;
  sum.add(100_s, 1'000'000);  // 100 s of each of a million ranks; a duration ends at 9.2 million seconds
  sum += 1_ps;
  CHECK(sum.seconds() == 1e8);
  CHECK(sum == DurationSum::picoseconds(Int128{100'000'000} * 1'000'000'000'000 + 1));
}

TEST_CASE("a sum of durations is a duration again where one holds it", "[units]") {
  DurationSum sum;
  sum += Duration::max();
  CHECK(sum.duration() == Duration::max());
  sum += 1_ps;
  CHECK_THROWS_AS(sum.duration(), QuantityOverflow);
  DurationSum later = sum;
  later += 5_s;
  CHECK((later - sum).duration() == 5_s);
  CHECK(sum < later);
}

}  // namespace
}  // namespace hdpsim
