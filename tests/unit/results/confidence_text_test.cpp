#include "sim/results/confidence_text.h"

#include <cmath>

#include "sim/results/table.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;

KindErrors kind_errors(double scale) {
  return {.spread = {0, scale, 4}, .kind = "dense, nvidia", .is_own = false, .sets = 3, .figures = 107};
}

/// A run of one step on a device with 80 GB, with errors of published runs.
Run sure_run(const std::string& plan, Duration time, double memory_gb) {
  Run run;
  run.info.plan = plan;
  run.info.gpus = 2;
  run.info.peak = 1_TFLOPs;
  run.info.device_memory = Bytes(80'000'000'000);
  run.info.errors = RunErrors{.kind = {Workload::dense, "nvidia", "MI300X"},
                              .step_time = kind_errors(0.1),
                              .speedup = kind_errors(0.05),
                              .memory = kind_errors(0.05)};
  StepResult step;
  step.tokens = 1000;
  step.mean[Activity::attention] = time;
  step.time = time;
  step.memory.device = Bytes(static_cast<std::int64_t>(memory_gb * 1e9));
  run.result.steps = {step};
  run.result.ranks.assign(2, step.mean);
  return run;
}

std::vector<Run> two_runs(double memory_gb) {
  std::vector<Run> runs = {sure_run("static", 20_s, memory_gb), sure_run("hdp-naive", 10_s, memory_gb)};
  evaluate(runs, "static");
  return runs;
}

TEST_CASE("both ends of an interval are in the unit of the upper one", "[confidence]") {
  CHECK(seconds_range_text({0.9, 1.1}) == "0.90-1.10 s");
  CHECK(seconds_range_text({13.86, 104.2}) == "13.9-104 s");
  CHECK(seconds_range_text({0.0125, 0.0993}) == "12.5-99.3 ms");
  CHECK(seconds_range_text({2e-7, 4e-7}) == "0.20-0.40 us");
  CHECK(speedup_range_text({1.118, 1.5}) == "1.12-1.50x");
}

// Student's 95th percentile with four degrees of freedom is 2.1318: e^(0.1 x 2.1318) = 1.238, e^(0.05 x 2.1318)
// = 1.112.
TEST_CASE("a table has the intervals of steps and speed-ups, and what they rest on", "[confidence][results]") {
  const std::vector<Run> runs = two_runs(40);
  CHECK_FALSE(runs[0].metrics.confidence->speedup);  // the baseline is as fast as itself
  const std::string table = result_table("a study", runs);
  CHECK_THAT(table, Contains("step time          90%"));
  CHECK_THAT(table, Contains("8.08-12.4 s"));
  CHECK_THAT(table, Contains("1.80-2.22x"));
  CHECK_THAT(table, Contains("90%: nine of ten published figures would lie there, by the errors of 107 steps in 3 sets "
                             "(dense, nvidia; nothing was published that is dense, nvidia, MI300X)\n"));
  CHECK(confidence_notes(runs).size() == 1);
}

TEST_CASE("without published errors a table has no interval", "[confidence][results]") {
  std::vector<Run> runs = {sure_run("static", 20_s, 40)};
  runs[0].info.errors.reset();
  evaluate(runs, std::nullopt);
  CHECK_THAT(result_table("a study", runs), !Contains("90%"));
  CHECK_THAT(confidence_sentence(runs[0]), Contains("not known"));
}

TEST_CASE("whether a plan fits is said with its probability unless it is 95 % sure to", "[confidence][results]") {
  CHECK(memory_verdict_text(two_runs(40)[0]).empty());
  CHECK(memory_verdict_text(two_runs(79)[0]) == "fits: 59%");  // log(80 / 79) / 0.05 = 0.25 deviations
  CHECK_THAT(memory_verdict_text(two_runs(85)[0]), Contains("does not fit (85% sure): 85.0 GB of 80.0 GB"));  // 1.21
}

TEST_CASE("a sentence says how sure the step, the speed-up and the memory are", "[confidence]") {
  CHECK(
      confidence_sentence(two_runs(40)[1]) ==
      "with 90% a step of hdp-naive takes 8.08-12.4 s, its speed-up over static is 1.80-2.22x, and it fits the memory "
      "of a device with >99%, by the errors of published runs (dense, nvidia: 107 steps in 3 sets).");
}

}  // namespace
}  // namespace hdpsim
