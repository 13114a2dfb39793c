#include "sim/trust/student.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("Student's quantiles are those of the published tables", "[fit]") {
  // Abramowitz and Stegun, table 26.10: 0.95 and 0.975.
  CHECK(student_quantile(0.95, 1) == Approx(6.314).epsilon(1e-4));
  CHECK(student_quantile(0.95, 2) == Approx(2.920).epsilon(1e-4));
  CHECK(student_quantile(0.975, 5) == Approx(2.571).epsilon(2e-4));
  CHECK(student_quantile(0.95, 10) == Approx(1.812).epsilon(3e-4));
  CHECK(student_quantile(0.05, 10) == -student_quantile(0.95, 10));
}

TEST_CASE("with many degrees of freedom Student's distribution is the normal one", "[fit]") {
  CHECK(student_quantile(0.95, 2000) == Approx(1.6449).epsilon(1e-3));
}

TEST_CASE("a quantile and its probability are inverse", "[fit]") {
  for (const int freedom : {1, 2, 3, 8, 21}) {
    for (const double p : {0.05, 0.3, 0.5, 0.9, 0.999}) {
      CAPTURE(freedom, p);
      CHECK(student_probability(student_quantile(p, freedom), freedom) == Approx(p));
    }
  }
}

}  // namespace
}  // namespace hdpsim
