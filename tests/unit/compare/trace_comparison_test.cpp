#include "sim/compare/trace_comparison.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

/// A trace of 4 s with two marked steps of 2 s: 1 s of attention, 1 s of products, half a second each of an all-gather
/// that nothing hides and of copies, and one idle second.
Recording recording() {
  RankRecording rank;
  rank.span_s = 4;
  const auto set = [&](DeviceActivity activity, double seconds) {
    rank.seconds[static_cast<std::size_t>(activity)] = seconds;
  };
  set(DeviceActivity::attention_forward, 0.25);
  set(DeviceActivity::attention_backward, 0.75);
  set(DeviceActivity::product, 1);
  set(DeviceActivity::all_gather, 0.5);
  set(DeviceActivity::copy, 0.5);
  set(DeviceActivity::idle, 1);
  rank.steps_s = {2, 2};
  Recording result;
  result.ranks.push_back(rank);
  return result;
}

Breakdown simulated() {
  Breakdown breakdown;
  breakdown[Activity::attention] = 500_ms;
  breakdown[Activity::linear] = 400_ms;
  breakdown[Activity::optimizer] = 100_ms;
  breakdown[Activity::grad_sync] = 150_ms;
  breakdown[Activity::cp_comm] = 100_ms;
  breakdown[Activity::offload_stall] = 250_ms;
  breakdown[Activity::bubble] = 300_ms;
  breakdown[Activity::overhead] = 200_ms;
  return breakdown;
}

TEST_CASE("a traced step is laid beside a simulated one, activity by activity", "[analysis]") {
  const TraceComparison comparison = compare_with_traces(recording(), simulated(), std::nullopt);
  CHECK(comparison.measured_s == Approx(2));
  CHECK(comparison.simulated_s == Approx(2));
  CHECK(comparison.marked_steps == 2);
  REQUIRE(comparison.activities.size() == 5);
  // Two steps in 4 s: every activity takes half of its time in the trace, and the simulation has the same.
  for (const ComparedActivity& activity : comparison.activities) {
    INFO(activity.name);
    CHECK(activity.measured_s == Approx(activity.simulated_s));
  }
  REQUIRE(comparison.activities[0].kinds.size() == 2);
  CHECK(comparison.activities[0].kinds[1].seconds == Approx(0.375));
  CHECK(differences_in_words(comparison).back() == "No activity differs by a hundredth of the step.");
}

TEST_CASE("words name the largest difference first, with its share of that of the steps", "[analysis]") {
  Breakdown faster = simulated();
  faster[Activity::attention] = 100_ms;  // 400 ms less
  faster[Activity::bubble] = 200_ms;     // 100 ms less
  const std::vector<std::string> words = differences_in_words(compare_with_traces(recording(), faster, std::nullopt));
  REQUIRE(words.size() == 3);
  CHECK(words[0] == "The measured step takes 2.00 s, 1.33 times the simulated one of 1.50 s.");
  CHECK(words[1] ==
        "attention: 400 ms more than simulated (500 ms against 100 ms), 5.00 times; that is 80 % of the difference of "
        "the "
        "steps");
  CHECK(words[2].starts_with("waiting and the host: 100 ms more"));
}

TEST_CASE("a trace without marks is as many steps as are said", "[analysis]") {
  Recording unmarked = recording();
  unmarked.ranks[0].steps_s.clear();
  CHECK(compare_with_traces(unmarked, simulated(), std::nullopt).measured_s == Approx(4));
  const TraceComparison four = compare_with_traces(unmarked, simulated(), 4);
  CHECK(four.measured_s == Approx(1));
  double sum = 0;
  for (const ComparedActivity& activity : four.activities) sum += activity.measured_s;
  CHECK(sum == Approx(1));
}

}  // namespace
}  // namespace hdpsim
