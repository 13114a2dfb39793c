#include "sim/replay/replay_summary.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

StepRow row(std::int64_t step, std::size_t plan, double time_s) {
  StepRow made;
  made.step = step;
  made.plan = plan;
  made.batch = {.sequences = 4, .tokens = 400, .longest = 250, .weighted_length = 200};
  made.time_s = time_s;
  return made;
}

using Times = std::vector<double>;

/// Two plans, the first of which is the baseline and takes 6 s a step.
struct Replayed {
  std::vector<WindowRow> windows;
  ReplaySummary summary;

  Replayed(const Times& times, std::int64_t window, double threshold) {
    ReplayFold fold({.steps = std::ssize(times), .plans = 2, .window = window, .threshold = threshold, .worst = 2},
                    [&](const WindowRow& done) { windows.push_back(done); });
    for (std::size_t step = 0; step < times.size(); ++step) {
      const auto number = static_cast<std::int64_t>(step);
      fold.add({row(number, 0, 6), row(number, 1, times[step])});
    }
    summary = fold.finish();
  }
  [[nodiscard]] const PlanSummary& plan() const { return summary.plans[1]; }
};

TEST_CASE("means, speed-ups and wins of a replay are those of its steps", "[replay]") {
  const Replayed replayed({3, 3, 2, 12}, 2, 1);
  const PlanSummary& plan = replayed.plan();
  CHECK(plan.mean_s == 20.0 / 4);
  CHECK(plan.speedup == 24.0 / 20);
  CHECK(plan.time_s.quantile(1) == 12);
  CHECK(plan.speedups.quantile(0) == 6.0 / 12);
  CHECK(plan.fastest == 3);
  CHECK(replayed.summary.plans[0].fastest == 1);
  CHECK(replayed.summary.best_mean_s == (3 + 3 + 2 + 6) / 4.0);
  CHECK(replayed.summary.lengths == BatchFigures{16, 1600, 250, 200});
}

TEST_CASE("a plan that does not fit in a step is not the fastest of it", "[replay]") {
  ReplayFold fold({.steps = 3, .plans = 2, .window = 2, .threshold = 1, .worst = 1, .device_gb = 80, .host_gb = 10},
                  [](const WindowRow&) {});
  for (std::int64_t step = 0; step < 3; ++step) {
    StepRow fast = row(step, 1, 2);
    if (step == 1) fast.device_gb = 106;
    if (step == 2) fast.host_gb = 11;
    fold.add({row(step, 0, 6), fast});
  }
  const ReplaySummary summary = fold.finish();
  CHECK(summary.plans[1].does_not_fit == 2);
  CHECK(summary.plans[1].fastest == 1);
  CHECK(summary.plans[0].fastest == 2);
  CHECK(summary.best_mean_s == (2 + 6 + 6) / 3.0);
}

TEST_CASE("steps that fit, but not with the largest gaps of the allocator, are counted as at risk", "[replay]") {
  ReplayFold fold({.steps = 3, .plans = 1, .window = 2, .threshold = 1, .worst = 1, .device_gb = 80, .host_gb = 10},
                  [](const WindowRow&) {});
  for (const auto& [step, device_gb, at_most_gb] : {std::tuple(0, 70, 79), {1, 78, 83}, {2, 81, 85}}) {
    StepRow made = row(step, 0, 2);
    made.device_gb = device_gb;
    made.device_at_most_gb = at_most_gb;
    fold.add({made});
  }
  const ReplaySummary summary = fold.finish();
  CHECK(summary.plans[0].at_risk == 1);
  CHECK(summary.plans[0].does_not_fit == 1);
  CHECK(summary.plans[0].device_at_most_gb == 85);
}

TEST_CASE("the slowest steps are kept, slowest first, the earlier of two that are as slow", "[replay]") {
  const Replayed replayed({3, 9, 2, 9, 9, 1}, 2, 0);
  REQUIRE(replayed.plan().worst.size() == 2);
  CHECK(replayed.plan().worst[0].step == 1);
  CHECK(replayed.plan().worst[1].step == 3);
}

TEST_CASE("disjoint windows tell every plan's mean, the last one over what is left", "[replay]") {
  const Replayed replayed({3, 5, 2, 2, 12}, 2, 1);
  REQUIRE(replayed.windows.size() == 6);
  const auto is = [](const WindowRow& window, std::int64_t first, std::int64_t last, std::size_t plan, double mean_s) {
    return window.first == first && window.last == last && window.plan == plan && window.mean_s == mean_s &&
           window.speedup == 6 / mean_s && window.weighted_length == 200 && window.mean_length == 100;
  };
  CHECK(is(replayed.windows[0], 0, 1, 0, 6));
  CHECK(is(replayed.windows[1], 0, 1, 1, 4));
  CHECK(is(replayed.windows[3], 2, 3, 1, 2));
  CHECK(is(replayed.windows[5], 4, 4, 1, 12));
}

TEST_CASE("a stretch is the union of windows below the threshold that overlap or touch", "[replay]") {
  // Windows of two steps whose sum is above 6 s are below 2 times as fast: those that end with steps 2, 3, 4 and 7.
  const Replayed replayed({3, 3, 4, 4, 3, 3, 3, 5, 1, 1}, 2, 2);
  const PlanSummary& plan = replayed.plan();
  CHECK(plan.stretches == 2);
  CHECK(plan.steps_in_them == 4 + 2);
  REQUIRE(plan.lowest.size() == 2);
  CHECK(plan.lowest[0].all.first == 1);
  CHECK(plan.lowest[0].all.last == 4);
  CHECK(plan.lowest[0].all.speedup == 24.0 / (3 + 4 + 4 + 3));
  CHECK(plan.lowest[0].lowest.first == 2);
  CHECK(plan.lowest[0].lowest.speedup == 12.0 / (4 + 4));
  CHECK(plan.lowest[1].all.first == 6);
  CHECK(plan.lowest[1].all.last == 7);
  CHECK(replayed.summary.plans[0].stretches == 0);  // the baseline has no lead to lose
}

TEST_CASE("a run shorter than the window is one window, and as fast as the threshold is no loss", "[replay]") {
  const Replayed replayed({3, 3, 3}, 50, 2);
  CHECK(replayed.summary.rules.window == 3);
  CHECK(replayed.plan().stretches == 0);
  CHECK(Replayed({3, 3, 3.1}, 50, 2).plan().steps_in_them == 3);
}

TEST_CASE("the window with the lowest speed-up is known whether it is a loss or not", "[replay]") {
  const Replayed replayed({2, 2, 3, 4, 2}, 2, 1);
  REQUIRE(replayed.plan().least);
  CHECK(replayed.plan().least->speedup == 12.0 / 7);
  CHECK(replayed.plan().least->first == 2);
  CHECK(replayed.plan().least->last == 3);
  CHECK(replayed.plan().stretches == 0);
  CHECK_FALSE(replayed.summary.plans[0].least);
}

TEST_CASE("of many stretches those with the lowest speed-ups are kept, in the order of steps", "[replay]") {
  Times times;
  for (int i = 0; i < 8; ++i) {
    times.push_back(4 + i % 4);  // lost, by more or less
    times.push_back(1);          // won back
  }
  const PlanSummary plan = Replayed(times, 1, 2).plan();
  CHECK(plan.stretches == 8);
  REQUIRE(plan.lowest.size() == 5);
  CHECK(std::is_sorted(plan.lowest.begin(), plan.lowest.end(),
                       [](const Stretch& a, const Stretch& b) { return a.all.first < b.all.first; }));
  for (const std::int64_t step : {6, 14}) {  // 7 s
    CHECK(std::any_of(plan.lowest.begin(), plan.lowest.end(), [&](const Stretch& s) { return s.all.first == step; }));
  }
}

TEST_CASE("stretches are those that a look at every window finds", "[replay]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "stretches");
    Times times(1 + random.below(60));
    for (double& time : times) time = static_cast<double>(1 + random.below(8));
    const auto window = static_cast<std::size_t>(1 + random.below(times.size()));
    std::vector<bool> lost(times.size() + 1, false);
    for (std::size_t begin = 0; begin + window <= times.size(); ++begin) {
      double sum = 0;
      for (std::size_t i = begin; i < begin + window; ++i) sum += times[i];
      if (6.0 * static_cast<double>(window) / sum >= 1.5) continue;
      std::fill_n(lost.begin() + static_cast<std::ptrdiff_t>(begin), window, true);
    }
    const auto begins = [&](std::size_t step) { return lost[step] && (step == 0 || !lost[step - 1]); };
    std::int64_t stretches = 0;
    for (std::size_t step = 0; step < times.size(); ++step) stretches += begins(step) ? 1 : 0;
    const PlanSummary plan = Replayed(times, static_cast<std::int64_t>(window), 1.5).plan();
    CHECK(plan.stretches == stretches);
    CHECK(plan.steps_in_them == std::count(lost.begin(), lost.end(), true));
  }
}

TEST_CASE("the chart has a fixed number of points, and all steps are in them", "[replay]") {
  Times times(1003, 3);
  times[700] = 30;
  const ReplaySummary summary = Replayed(times, 10, 0).summary;
  REQUIRE(summary.series.size() == 400);
  std::int64_t next = 0;
  double most = 0;
  for (const SeriesPoint& point : summary.series) {
    CHECK(point.first == next);
    next = point.last + 1;
    most = std::max(most, point.plans[1].most_s);
    CHECK(point.plans[1].least_s <= point.plans[1].mean_s);
    CHECK(point.plans[1].mean_s <= point.plans[1].most_s);
  }
  CHECK(next == 1003);
  CHECK(most == 30);
}

}  // namespace
}  // namespace hdpsim
