#include "sim/analysis/confidence.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

RunResult steps_of(const std::vector<std::int64_t>& seconds) {
  RunResult result;
  for (const std::int64_t each : seconds) {
    StepResult step;
    step.time = Duration::picoseconds(each * 1'000'000'000'000);
    result.steps.push_back(step);
  }
  return result;
}

KindErrors errors_of(double center, double scale) {
  return {.spread = {center, scale, 4}, .kind = "dense", .is_own = false, .sets = 2, .figures = 20};
}

TEST_CASE("the mean of n steps deviates by the root of n less than a step", "[confidence]") {
  // 9, 10 and 11 s: the deviation of a step is 1 s.
  CHECK(deviation_of_mean(steps_of({9, 10, 11})) == Approx(1 / std::sqrt(3.0) / 10));
  CHECK(deviation_of_mean(steps_of({10})) == 0);
}

TEST_CASE("the interval of a step is that of published errors of its kind", "[confidence]") {
  const RunErrors errors{.kind = {Workload::dense, "nvidia", "X"},
                         .step_time = errors_of(std::log(1.1), 0.1),
                         .speedup = {},
                         .memory = {}};
  const Confidence found = confidence_of(errors, steps_of({10}), 10, 0.5);
  // Student's 95th percentile with four degrees of freedom: 2.1318.
  CHECK(found.step_time_s.least == Approx(11 * std::exp(-0.21318)).epsilon(1e-4));
  CHECK(found.step_time_s.most == Approx(11 * std::exp(0.21318)).epsilon(1e-4));
  CHECK(found.errors_of == "dense");
  CHECK(found.kind == "dense, nvidia, X");
  CHECK_FALSE(found.fits);
  CHECK(confidence_of(errors, steps_of({9, 10, 11}), 10, 0.5).step_time_s.most > found.step_time_s.most);
}

TEST_CASE("a plan that needs what the device has fits as often as memory is predicted too large", "[confidence]") {
  RunErrors errors{.kind = {}, .step_time = errors_of(0, 0.1), .speedup = {}, .memory = errors_of(0, 0.05)};
  const auto fits = [&](double use) { return *confidence_of(errors, steps_of({1}), 1, use).fits; };
  CHECK(fits(1) == Approx(0.5));
  CHECK(fits(0.5) > 0.999);
  CHECK(fits(std::exp(2.1318 * 0.05)) == Approx(0.05).epsilon(1e-3));
}

TEST_CASE("what both plans' batches share does not widen the interval of their ratio", "[confidence]") {
  const RunErrors errors{.kind = {}, .step_time = errors_of(0, 0.2), .speedup = errors_of(0, 0.05), .memory = {}};
  const RunResult baseline = steps_of({20, 40, 60});
  const auto alike = speedup_range(errors, baseline, steps_of({10, 20, 30}), 2);
  REQUIRE(alike);
  CHECK(alike->least == Approx(2 * std::exp(-2.1318 * 0.05)).epsilon(1e-4));
  CHECK(speedup_range(errors, baseline, steps_of({10, 30, 20}), 2)->least < alike->least);
  CHECK_FALSE(
      speedup_range({.kind = {}, .step_time = errors_of(0, 0.2), .speedup = {}, .memory = {}}, baseline, baseline, 1));
}

}  // namespace
}  // namespace hdpsim
