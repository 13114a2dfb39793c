#include "sim/analysis/uncertainty.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr auto gemm = static_cast<std::size_t>(CostFamily::gemm);
constexpr auto messages = static_cast<std::size_t>(CostFamily::messages);

// Steps of these seconds, a share of each of which is matrix products.
RunResult run_with(const std::vector<double>& seconds, double gemm_share = 0) {
  RunResult run;
  for (const double time : seconds) {
    StepResult step;
    step.time = Duration::seconds(time);
    step.tokens = 1000;
    step.model_flops = 100;
    step.slopes.assign(cost_families, Duration{});
    step.slopes[gemm] = step.time.scaled(gemm_share);
    run.steps.push_back(step);
  }
  return run;
}

UncertaintyModel model_of(double gemm_cv, std::int64_t samples = 4000) {
  UncertaintyModel model;
  model.samples = samples;
  model.errors[gemm].cv = gemm_cv;
  model.advice[gemm] = "calibrate products";
  model.advice[messages] = "calibrate messages";
  return model;
}

double half_width(const Percentiles& values) {
  return (values.p95 - values.p5) / 2;
}

constexpr double z95 = 1.645;  // of the normal distribution

TEST_CASE("what is known exactly has no interval", "[uncertainty]") {
  const Uncertainty found = uncertainty_of(model_of(0), run_with({2, 2, 2}), nullptr, 4, 1000);
  CHECK(found.step_time_s.p5 == Approx(2));
  CHECK(found.step_time_s.p95 == Approx(2));
  CHECK(found.tokens_per_s.p50 == Approx(500));
  CHECK(found.tokens_per_s_per_gpu.p50 == Approx(125));
  CHECK(found.mfu.p50 == Approx(0.05));  // 100 FLOP in 2 s of 1000 FLOP/s
  CHECK(found.advice.empty());
}

TEST_CASE("a family's error counts by its share of the step", "[uncertainty]") {
  const double cv = 0.05;
  const double share = 0.4;
  const Uncertainty found = uncertainty_of(model_of(cv), run_with({10, 10}, share), nullptr, 1, 1);
  // 4,000 samples: percentiles are off by a few percent of the deviation.
  CHECK(half_width(found.step_time_s) == Approx(z95 * cv * share * 10).epsilon(0.08));
  CHECK(found.step_time_s.mean == Approx(10).epsilon(0.002));
  CHECK(found.shares.front().source == "gemm");
  CHECK(found.shares.front().share == Approx(1));
  CHECK(found.shares.front().deviation == Approx(cv * share));
  CHECK(found.advice == "calibrate products");
}

TEST_CASE("batches count by the error of their mean", "[uncertainty]") {
  std::vector<double> seconds;
  for (int i = 0; i < 100; ++i) seconds.push_back(i % 2 == 0 ? 9 : 11);  // deviation 1, of the mean of 100 0.1
  const Uncertainty found = uncertainty_of(model_of(0), run_with(seconds), nullptr, 1, 1);
  CHECK(half_width(found.step_time_s) == Approx(z95 * 0.1).epsilon(0.1));
  CHECK(found.shares.front().source == "batches");
  CHECK(found.shares.front().deviation == Approx(0.01));
  CHECK_THAT(found.advice, Catch::Contains("data.steps"));
}

TEST_CASE("what both plans have in common cancels out of a speed-up", "[uncertainty]") {
  const RunResult baseline = run_with({10, 30, 20}, 0.5);
  const RunResult same_share = run_with({5, 15, 10}, 0.5);
  const RunResult without = run_with({5, 15, 10}, 0);
  const UncertaintyModel model = model_of(0.1);
  CHECK(half_width(*uncertainty_of(model, same_share, &baseline, 1, 1).speedup) == Approx(0).margin(1e-12));
  const Percentiles ratio = *uncertainty_of(model, without, &baseline, 1, 1).speedup;
  CHECK(half_width(ratio) == Approx(z95 * 2 * 0.1 * 0.5).epsilon(0.08));
}

TEST_CASE("an error that nobody knows is told, and what to measure for it", "[uncertainty]") {
  RunResult run = run_with({10, 10}, 0.4);
  for (StepResult& step : run.steps) step.slopes[messages] = step.time.scaled(0.2);
  const Uncertainty found = uncertainty_of(model_of(0.05), run, nullptr, 1, 1);
  CHECK(found.unknown == std::vector<std::string>{"messages"});
  CHECK(found.advice == "calibrate messages");
}

TEST_CASE("elasticities come from the steps that have them", "[uncertainty]") {
  RunResult run = run_with({10, 30}, 0.4);
  run.steps[1].slopes.clear();
  CHECK(elasticities(run)[gemm] == Approx(0.4));
  run.steps[0].slopes.clear();
  CHECK(elasticities(run)[gemm] == 0);
}

TEST_CASE("residuals are drawn as they are: between their least and their most, with their median in the middle",
          "[uncertainty]") {
  FamilyError error;
  error.residuals = {{1, {-0.2, -0.1, 0.0, 0.1, 0.25}}};
  CHECK(error.factor(0.5, 0, 0) == Approx(1 / 0.8));  // measured over predicted
  CHECK(error.factor(0.5, 0.5, 0) == Approx(1));
  CHECK(error.factor(0.5, 0.125, 0) == Approx(1 / 0.85));
  CHECK(error.factor(0.5, 1, 0) == Approx(1 / 1.25));
  error.residuals.push_back({3, {0.5, 0.5}});
  CHECK(error.factor(0.24, 0.5, 0) == Approx(1));  // a quarter of the samples are of the first fit
  CHECK(error.factor(0.26, 0.5, 0) == Approx(1 / 1.5));
}

TEST_CASE("a sample is the same whatever was drawn before it", "[uncertainty]") {
  const UncertaintyModel model = model_of(0.1);
  const Sample sample = draw_sample(model, 10, 7);
  (void)draw_sample(model, 10, 8);
  CHECK(draw_sample(model, 10, 7).factors == sample.factors);
  CHECK(draw_sample(model, 10, 7).steps == sample.steps);
  CHECK(draw_sample(model, 10, 8).factors != sample.factors);
}

}  // namespace
}  // namespace hdpsim
