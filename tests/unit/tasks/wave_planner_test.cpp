#include "sim/tasks/wave_planner.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

double tenths(double number) {
  return std::round(10 * number) / 10;
}

/// Figure 5a of Spindle (arXiv 2409.03365): three runs of 8, 12 and 6 operators on 4 devices. It prints, in units of C,
/// what they take once they are rounded: 8 operators on 2 devices 0.96, 8 on 2 and 4 on 1 together 1.02, 6 on 1 0.6.
/// Before, 7.6 on 2 and 0.4 on 1 take 1, and so do 8.4 on 2 and 3.6 on 1. The times of an operator follow.
struct FigureFiveA {
  double first_on_two = 0.96 / 8;
  double first_on_one = (1 - 7.6 * first_on_two) / 0.4;
  // 8 x + 4 y = 1.02 and 8.4 x + 3.6 y = 1
  double second_on_two = (4 * 1 - 3.6 * 1.02) / (4 * 8.4 - 3.6 * 8);
  double second_on_one = (1.02 - 8 * second_on_two) / 4;
  double third_on_one = 0.6 / 6;

  [[nodiscard]] std::vector<OperatorRun> runs() const {
    return {{8, ScalingCurve({{1, first_on_one}, {2, first_on_two}})},
            {12, ScalingCurve({{1, second_on_one}, {2, second_on_two}})},
            {6, ScalingCurve({{1, third_on_one}})}};
  }
};

TEST_CASE("the optimum of figure 5a has its devices, to the digit", "[tasks]") {
  const LevelOptimum optimum = level_optimum(FigureFiveA().runs(), 4);
  CHECK(tenths(optimum.devices[0]) == 1.9);
  CHECK(tenths(optimum.devices[1]) == 1.5);
  CHECK(tenths(optimum.devices[2]) == 0.6);
  CHECK(std::accumulate(optimum.devices.begin(), optimum.devices.end(), 0.0) == Approx(4));
}

TEST_CASE("the two points of figure 5a have its operators, and rounded its times", "[tasks]") {
  const std::vector<OperatorRun> runs = FigureFiveA().runs();
  const double devices[] = {1.9, 1.5, 0.6};
  std::vector<TwoPoints> points;
  for (std::size_t i = 0; i < 3; ++i) points.push_back(two_points(runs[i], devices[i], 1));
  CHECK(points[0].upper_devices == 2);
  CHECK(points[0].upper == Approx(7.6));
  CHECK(points[0].lower_devices == 1);
  CHECK(points[0].lower == Approx(0.4));
  CHECK(points[1].upper == Approx(8.4));
  CHECK(points[1].lower == Approx(3.6));
  CHECK(points[2].upper_devices == 1);
  CHECK(points[2].upper == 6);
  CHECK(points[2].lower_devices == 0);  // the paper's dummy
  const double printed[] = {0.96, 1.02, 0.6};
  const std::size_t parts[] = {1, 2, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<RunPart> rounded = rounded_parts(i, points[i]);
    CHECK(rounded.size() == parts[i]);
    double seconds = 0;
    for (const RunPart& part : rounded) {
      seconds += static_cast<double>(part.operators) * runs[i].curve.seconds(part.devices);
    }
    CHECK(seconds == Approx(printed[i]));
  }
  CHECK(rounded_parts(1, points[1])[0].operators == 8);
  CHECK(rounded_parts(1, points[1])[1].operators == 4);
}

TEST_CASE("waves of figure 5a fill the devices first, and end with the part that keeps them busiest", "[tasks]") {
  const std::vector<OperatorRun> runs = FigureFiveA().runs();
  const std::vector<Wave> waves = waves_of(runs, {{0, 2, 8}, {1, 2, 8}, {1, 1, 4}, {2, 1, 6}}, 4);
  // All runs fit at once only with the second on one device: then the third ends first of what keeps most devices busy.
  REQUIRE(waves[0].parts.size() == 3);
  CHECK(waves[0].seconds == Approx(0.6));
  CHECK(waves.size() <= 4);
}

TEST_CASE("two equal runs get half of the devices each, and one wave", "[tasks]") {
  const ScalingCurve curve({{1, 8}, {2, 4}, {4, 2}, {8, 1}});
  const LevelPlan plan = plan_level({{10, curve}, {10, curve}}, 8);
  CHECK(plan.optimum.seconds == Approx(20));
  REQUIRE(plan.waves.size() == 1);
  CHECK(plan.seconds() == Approx(20));
  for (const RunPart& part : plan.waves[0].parts) CHECK(part.devices == 4);
}

TEST_CASE("a run that scales no further decides the time alone, and others have what they need", "[tasks]") {
  const std::vector<OperatorRun> runs = {{10, ScalingCurve({{1, 1}})}, {10, ScalingCurve({{1, 0.5}, {2, 0.25}})}};
  const LevelOptimum optimum = level_optimum(runs, 8);
  CHECK(optimum.seconds == Approx(10));
  CHECK(optimum.devices[0] == Approx(1));
  CHECK(optimum.devices[1] == Approx(0.5));
}

/// A run whose operators take less on more devices, by chance hardly or much less.
OperatorRun random_run(RandomStream& random, std::int64_t devices) {
  std::vector<ScalingPoint> points;
  double seconds = 0.1 + random.uniform();
  for (std::int64_t n = 1; n <= devices; n *= 2) {
    points.push_back({n, seconds});
    seconds *= 0.45 + 0.6 * random.uniform();
  }
  return {1 + static_cast<std::int64_t>(40 * random.uniform()), ScalingCurve(points)};
}

TEST_CASE("plans of random levels hold what they promise", "[tasks]") {
  tests::for_seeds("tasks", 300, [](RandomStream& random) {
    const auto devices = static_cast<std::int64_t>(1) << static_cast<int>(7 * random.uniform());
    std::vector<OperatorRun> runs;
    std::vector<OperatorRun> envelopes;
    const std::uint64_t count = 1 + random.below(8);
    for (std::uint64_t i = 0; i < count; ++i) {
      runs.push_back(random_run(random, devices));
      envelopes.push_back({runs.back().operators, runs.back().curve.envelope()});
    }
    const LevelPlan plan = plan_level(runs, devices);
    std::map<std::size_t, std::int64_t> done;
    double busy = 0;
    for (const Wave& wave : plan.waves) {
      std::int64_t used = 0;
      std::set<std::size_t> members;
      for (const RunPart& part : wave.parts) {
        used += part.devices;
        done[part.run] += part.operators;
        CHECK(members.insert(part.run).second);
        const double seconds = static_cast<double>(part.operators) * runs[part.run].curve.seconds(part.devices);
        CHECK(seconds <= wave.seconds * (1 + 1e-9));
        busy += seconds * static_cast<double>(part.devices);
      }
      CHECK(used <= devices);
    }
    double least_busy = 0;
    for (std::size_t run = 0; run < runs.size(); ++run) {
      CHECK(done[run] == runs[run].operators);
      double least = std::numeric_limits<double>::infinity();
      for (const ScalingPoint& point : runs[run].curve.points()) {
        least = std::min(least, point.seconds * static_cast<double>(point.devices));
      }
      least_busy += least * static_cast<double>(runs[run].operators);
    }
    CHECK(plan.waves.size() <= 2 * runs.size());
    CHECK(plan.seconds() >= level_optimum(envelopes, devices).seconds * (1 - 1e-9));
    // No operator takes fewer device-seconds than on its most frugal point, so that no more of them are idle than the
    // rest.
    const double all = plan.seconds() * static_cast<double>(devices);
    CHECK(1 - busy / all <= 1 - least_busy / all + 1e-9);
  });
}

}  // namespace
}  // namespace hdpsim
