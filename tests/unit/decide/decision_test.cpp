#include "sim/decide/decision.h"

#include "sim/decide/cluster_search.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

// 1,000 tokens/s on 100 GPUs.
Run a_run_of_100() {
  Run run;
  run.info.gpus = 100;
  run.metrics.tokens_per_s = 1000;
  run.metrics.step_time_s.mean = 2;
  return run;
}

constexpr double ten_days_of_tokens = 1000.0 * 86400 * 10;

TEST_CASE("days are tokens over the rate, and GPU-hours those of all GPUs in all of them", "[decide]") {
  const auto training = training_of(a_run_of_100(), ten_days_of_tokens, {});
  REQUIRE(training);
  CHECK(training->days == Approx(10));
  CHECK(training->gpu_hours == Approx(10 * 24 * 100));
  CHECK(training->tokens_per_month == Approx(3 * ten_days_of_tokens));
  CHECK_FALSE(training->sure_days);
  CHECK_FALSE(training->energy_mwh);
  CHECK_FALSE(training->cost);
}

TEST_CASE("time that failures take makes days longer", "[decide]") {
  Run run = a_run_of_100();
  run.metrics.goodput = Goodput{.share = 0.8};
  const auto training = training_of(run, ten_days_of_tokens, {});
  CHECK(training->goodput == Approx(0.8));
  CHECK(training->days == Approx(10 / 0.8));
  CHECK(training->gpu_hours == Approx(24'000 / 0.8));
  CHECK(training->tokens_per_month == Approx(0.8 * 3 * ten_days_of_tokens));
  run.metrics.goodput->share = 0;
  CHECK_FALSE(training_of(run, ten_days_of_tokens, {}));
}

TEST_CASE("the interval of days is that of the step", "[decide]") {
  Run run = a_run_of_100();
  run.metrics.confidence = Confidence{.kind = "", .errors_of = "", .step_time_s = {1.5, 4}};
  const auto training = training_of(run, ten_days_of_tokens, {});
  REQUIRE(training->sure_days);
  CHECK(training->sure_days->least == Approx(10 * 1.5 / 2));
  CHECK(training->sure_days->most == Approx(10 * 4 / 2));
}

TEST_CASE("energy is power in all GPU-hours times the site's, and money is of both", "[decide]") {
  const Run run = a_run_of_100();
  const auto powered = training_of(run, ten_days_of_tokens, {.watts = 800, .pue = 1.25});
  CHECK(powered->energy_mwh == Approx(24'000 * 800 * 1.25 / 1e6));
  CHECK_FALSE(powered->cost);
  const auto rented = training_of(run, ten_days_of_tokens, {.gpu_hour = 2});
  CHECK(rented->cost == Approx(48'000));
  const auto both = training_of(run, ten_days_of_tokens, {.gpu_hour = 2, .watts = 800, .kwh = 0.1, .pue = 1.25});
  CHECK(both->cost == Approx(48'000 + 24'000 * 0.1));  // 24 MWh
}

TEST_CASE("a run that is refused or does not fit trains nothing", "[decide]") {
  Run large = a_run_of_100();
  large.metrics.fits = false;
  CHECK_FALSE(training_of(large, 1, {}));
  Run refused = a_run_of_100();
  refused.result.refusal = Refusal{};
  CHECK_FALSE(training_of(refused, 1, {}));
}

TEST_CASE("each run stands over that of its plan at the first point", "[decide]") {
  const Study study = StudyFile(test::good_study).load({"sweep={cluster.gpus: [32, 64]}"});
  const std::vector<Run> runs = *run_study(study, {});
  const auto decisions = decisions_of(study, runs, 1e9, {{}, Price{2, "USD"}});
  REQUIRE(decisions.size() == 4);
  for (std::size_t plan = 0; plan < 2; ++plan) {
    CHECK(decisions[plan].over_first->days == 1);
    const double slower = runs[plan].metrics.tokens_per_s / runs[2 + plan].metrics.tokens_per_s;
    const Decision::Over& over = *decisions[2 + plan].over_first;
    CHECK(over.days == Approx(slower));
    CHECK(over.gpu_hours == Approx(2 * slower));
    CHECK(over.cost == Approx(2 * slower));
  }
}

/// A search of the good study: 32 GPUs in nodes of 8, tp 2.
std::vector<PlanSizes> searched(double days, const std::vector<std::string>& changes = {}) {
  const StudyFile file(test::good_study);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return *search_clusters(file.load(changes), {.tokens = 1e9, .days = days}, {}, catalog, {});
}

TEST_CASE("the fewest GPUs are in time, a node less is not, and both were simulated as studies of that size",
          "[decide]") {
  const PlanSizes own = searched(1e6).back();  // whatever size
  const double days = own.simulated.at(32).training->days / 1.2;
  const PlanSizes plan = searched(days).back();
  REQUIRE(plan.smallest.gpus);
  CHECK(*plan.smallest.gpus % 8 == 0);
  CHECK(plan.simulated.at(*plan.smallest.gpus).training->days <= days);
  CHECK(plan.simulated.at(*plan.smallest.gpus - 8).training->days > days);
  const StudyFile file(test::good_study);
  const auto runs = *run_study(file.load({fmt::format("cluster.gpus={}", *plan.smallest.gpus)}), {});
  CHECK(plan.simulated.at(*plan.smallest.gpus).run->metrics.tokens_per_s == runs.back().metrics.tokens_per_s);
  REQUIRE(plan.surest);
  REQUIRE(plan.surest->gpus);
  CHECK(*plan.surest->gpus > *plan.smallest.gpus);
  CHECK(plan.simulated.at(*plan.surest->gpus).training->sure_days->most <= days);
}

TEST_CASE("days that no size reaches are said to be out of reach", "[decide]") {
  for (const PlanSizes& plan : searched(1e-6)) {
    CHECK_FALSE(plan.smallest.gpus);
    CHECK_THAT(plan.smallest.why, Catch::Contains("steps do not get shorter any more"));
  }
}

TEST_CASE("a mesh that is for one size has no other, and says why", "[decide]") {
  const PlanSizes plan = searched(1e-6, {"mesh.hdp=16"}).front();
  CHECK(plan.simulated.size() == 1);
  CHECK_FALSE(plan.smallest.gpus);
  REQUIRE_FALSE(plan.refused.empty());
  CHECK_THAT(plan.refused.begin()->second, Catch::Contains("hdp"));
}

}  // namespace
}  // namespace hdpsim
