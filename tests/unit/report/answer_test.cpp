#include "sim/report/answer.h"

#include <algorithm>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

constexpr std::int64_t gigabyte = 1'000'000'000;

/// A run of one step whose ranks compute for 4 s and then wait for keys and values.
Run a_waiting_run(const std::string& plan, Duration waiting, std::size_t point = 0) {
  Run run;
  run.info.plan = plan;
  run.info.point = point;
  run.info.profile = "bytescale-implied (published)";
  run.info.gpus = 2;
  run.info.peak = 1_TFLOPs;
  run.info.device_memory = Bytes(80 * gigabyte);
  if (point > 0) run.info.coordinates = {{"data.context", Value::scalar("64Ki")}};
  StepResult step;
  step.tokens = 1000;
  step.mean[Activity::attention] = 4_s;
  step.mean[Activity::cp_comm] = waiting;
  step.time = step.mean.total();
  run.result.steps = {step};
  run.result.ranks.assign(2, step.mean);
  return run;
}

std::vector<Run> evaluated(std::vector<Run> runs, const std::optional<std::string>& versus) {
  evaluate(runs, versus);
  return runs;
}

/// The run needs 90 of 80 GB.
Run too_large(Run run) {
  run.result.steps[0].memory.device = Bytes(90 * gigabyte);
  return run;
}

TEST_CASE("the answer names the fastest plan, its lead over the baseline, and what shrinks", "[answer]") {
  const Answer answer = answer_of(evaluated({a_waiting_run("static", 6_s), a_waiting_run("hdp-naive", 1_s)}, "static"));
  CHECK(answer.lead ==
        "hdp-naive is the fastest plan: a step takes 5.00 s, with static 10.0 s: 2.00 times as fast. What shrinks is "
        "cp_comm, waiting for keys and values that are on their way (context parallelism): 5.00 s less of a mean "
        "rank's step.");
}

TEST_CASE("the answer says how fast the fastest plan is against the best static mesh", "[answer]") {
  std::vector<Run> runs = evaluated({a_waiting_run("static", 6_s), a_waiting_run("hdp-naive", 1_s)}, "static");
  auto best = std::make_shared<Run>(a_waiting_run("static (a2a)", 4_s));
  best->metrics = metrics_of(best->info, best->result);
  for (Run& run : runs) compare_with(BestStatic{best, 2}, run);
  CHECK_THAT(answer_of(runs).lead,
             StartsWith("hdp-naive is the fastest plan: a step takes 5.00 s, with static 10.0 s: 2.00 times as fast. "
                        "Against the best static mesh of its tp and pp, static (a2a) with 8.00 s, it is 1.60 times as "
                        "fast. What shrinks is cp_comm"));
  std::vector<Run> sweep = runs;
  for (Run& run : runs) {
    run.info.point = 1;
    run.info.coordinates = {{"data.context", Value::scalar("64Ki")}};
    sweep.push_back(run);
  }
  CHECK_THAT(answer_of(sweep).lead,
             StartsWith("hdp-naive is the fastest plan at all 2 points, 2.00 to 2.00 times as fast as static and 1.60 "
                        "to 1.60 times as fast as the best static mesh of its tp and pp."));
}

TEST_CASE("a plan that was refused is never the fastest, nor compared with", "[answer]") {
  Run refused = a_waiting_run("verl", 1_s);
  refused.result = {};
  refused.result.refusal = Refusal{0, "too many tokens", ""};
  const Answer answer =
      answer_of(evaluated({refused, a_waiting_run("static", 6_s), a_waiting_run("hdp-naive", 1_s)}, "verl"));
  CHECK_THAT(answer.lead, StartsWith("hdp-naive is the fastest plan that is not refused: a step takes 5.00 s, with "
                                     "static 10.0 s: 2.00 times as fast."));
  CHECK(answer.notes.front() == "verl is refused: too many tokens (step 0).");
  const Answer alone = answer_of(evaluated({refused, a_waiting_run("static", 6_s)}, std::nullopt));
  CHECK_THAT(alone.lead, StartsWith("static is the only plan that is not refused. static takes 10.0 s a step"));
}

TEST_CASE("a baseline that wins is compared with the next plan", "[answer]") {
  const Answer answer = answer_of(
      evaluated({a_waiting_run("static", 1_s), a_waiting_run("verl", 6_s), a_waiting_run("hdp-naive", 2_s)}, "static"));
  CHECK_THAT(answer.lead,
             StartsWith("static is the fastest plan: a step takes 5.00 s, with hdp-naive 6.00 s: 1.20 times"));
}

TEST_CASE("a plan that does not fit is never the fastest, and its reason stands below", "[answer]") {
  const Answer answer = answer_of(
      evaluated({a_waiting_run("static", 6_s), too_large(a_waiting_run("hdp-naive", 1_s)), a_waiting_run("verl", 4_s)},
                "static"));
  CHECK_THAT(answer.lead,
             StartsWith("verl is the fastest plan that fits: a step takes 8.00 s, with static 10.0 s: 1.25"));
  CHECK_THAT(answer.notes.front(), StartsWith("hdp-naive does not fit: 90.0 GB of 80.0 GB on a device"));
}

TEST_CASE("a baseline that does not fit is nothing to be faster than", "[answer]") {
  const Answer answer = answer_of(
      evaluated({too_large(a_waiting_run("static", 6_s)), a_waiting_run("hdp-naive", 2_s), a_waiting_run("verl", 4_s)},
                "static"));
  CHECK_THAT(answer.lead, StartsWith("hdp-naive is the fastest plan that fits: a step takes 6.00 s, with verl 8.00 s"));
}

TEST_CASE("the only plan, the only one that fits, and none that does", "[answer]") {
  CHECK(answer_of(evaluated({a_waiting_run("static", 6_s)}, std::nullopt)).lead ==
        "static takes 10.0 s a step: cp_comm 60%, attention 40%.");
  CHECK_THAT(
      answer_of(evaluated({a_waiting_run("static", 6_s), too_large(a_waiting_run("verl", 1_s))}, std::nullopt)).lead,
      StartsWith("static is the only plan that fits. static takes 10.0 s a step"));
  CHECK(answer_of(evaluated({too_large(a_waiting_run("static", 6_s))}, std::nullopt)).lead ==
        "No plan fits the memory: static needs 90.0 GB of 80.0 GB on a device.");
  CHECK(answer_of({}).lead.empty());
}

TEST_CASE("over a sweep the answer counts points and tells the widest lead", "[answer]") {
  // 10 against 8 s, and 10 against 5 s: 1.25 and 2 times as fast.
  const Answer answer = answer_of(evaluated({a_waiting_run("static", 6_s), a_waiting_run("hdp-naive", 4_s),
                                             a_waiting_run("static", 6_s, 1), a_waiting_run("hdp-naive", 1_s, 1)},
                                            "static"));
  CHECK_THAT(answer.lead, StartsWith("hdp-naive is the fastest plan at all 2 points, 1.25 to 2.00 times as fast as "
                                     "static. The lead is widest at data.context 64Ki: a step takes 5.00 s"));
  const Answer mixed = answer_of(
      evaluated({a_waiting_run("static", 6_s), a_waiting_run("verl", 4_s), a_waiting_run("static", 6_s, 1),
                 a_waiting_run("verl", 4_s, 1), a_waiting_run("static", 2_s, 2), a_waiting_run("verl", 4_s, 2)},
                "static"));
  CHECK_THAT(mixed.lead, StartsWith("verl is the fastest plan at 2 of 3 points, static at 1,"));
}

TEST_CASE("the answer says what its intervals hold, and what the costs rest on", "[answer]") {
  const auto notes = [](const std::vector<Run>& runs) {
    std::string text;
    for (const std::string& note : answer_of(runs).notes) text += note + "\n";
    return text;
  };
  std::vector<Run> runs = evaluated({a_waiting_run("static", 6_s), a_waiting_run("hdp-naive", 1_s)}, "static");
  CHECK_THAT(notes(runs), Contains("One step was simulated: how much batches differ is not known"));
  runs[1].metrics.steps = 4;
  runs[1].metrics.speedup->p5 = 1.8;
  runs[1].metrics.speedup->p95 = 2.3;
  runs[1].metrics.evidence = {0, 0.5, 0.3, 0.2};
  CHECK_THAT(notes(runs),
             Contains("Over 4 steps the speed-up of hdp-naive over static is 1.80 to 2.30 (p5 to p95): that "
                      "is how much batches differ."));
  CHECK_THAT(notes(runs),
             Contains("Costs are those of bytescale-implied (published). The time of hdp-naive rests to 50% on "
                      "interpolation between samples, to 30% on extrapolation beyond them, to 20% on "
                      "formulas and waiting."));
  Uncertainty found;
  found.samples = 50;
  found.speedup = Percentiles{2, 1.7, 2, 2.4};
  runs[1].metrics.uncertainty = found;
  CHECK_THAT(notes(runs), Contains("Over 50 samples the speed-up of hdp-naive over static is 1.70 to 2.40 (p5 to p95); "
                                   "batches and the profile's errors of costs are in it."));
  runs[1].metrics.uncertainty->unknown = {"gemm", "messages"};
  CHECK_THAT(notes(runs), Contains("the profile's errors of costs are in it, but not those of gemm, messages."));
}

}  // namespace
}  // namespace hdpsim
