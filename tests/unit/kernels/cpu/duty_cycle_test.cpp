#include "kernels/cpu/duty_cycle.h"

#include <chrono>
#include <ctime>
#include <stdexcept>

#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

double seconds_on_core() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Wall seconds over seconds on a core of a thread that computes for so long.
double stretch_of_computing(double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const double first = seconds_on_core();
  while (seconds_on_core() - first < seconds) {
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / (seconds_on_core() - first);
}

// A busy machine makes it longer, never shorter. The last stop may still be due: 2 ms of computing, or 2 ms owed.
TEST_CASE("a slow thread needs so many times its time on a core", "[slow]") {
  DutyCycle cycle;
  cycle.set(4);
  CHECK(stretch_of_computing(0.1) > 0.9 * 4);
}

TEST_CASE("a thread cannot be made faster", "[slow]") {
  DutyCycle cycle;
  CHECK_THROWS_AS(cycle.set(0.5), std::logic_error);
}

}  // namespace
}  // namespace hdpsim::kernels
