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

TEST_CASE("what a fit leaves open counts by the ends of its intervals, correlated as its rows leave it",
          "[uncertainty]") {
  RunResult run = run_with({10, 10});
  // Two parameters, each 1 % slower at the lower end and 1 % faster at the upper one.
  const Duration slower = 100_ms;
  const Duration faster = Duration{} - slower;
  for (StepResult& step : run.steps) step.fitted = {slower, faster, slower, faster};
  UncertaintyModel model = model_of(0);
  const auto width = [&](std::vector<std::vector<double>> root) {
    model.fitted = std::move(root);
    return half_width(uncertainty_of(model, run, nullptr, 1, 1).step_time_s);
  };
  CHECK(width({}) == Approx(0).margin(1e-12));
  CHECK(width({{1}}) == Approx(0.1).epsilon(0.05));
  CHECK(width({{1}, {0, 1}}) == Approx(0.1 * std::sqrt(2)).epsilon(0.05));
  CHECK(width({{1}, {-1, 0}}) == Approx(0).margin(1e-12));  // a rate that is known of both together
  const Uncertainty found = uncertainty_of(model, run, nullptr, 1, 1);
  CHECK(found.shares.front().source == "batches");
  model.fitted = {{1}};
  CHECK(uncertainty_of(model, run, nullptr, 1, 1).shares.front().source == "fitted parameters");
}

TEST_CASE("a family whose parameter was fitted is not unknown", "[uncertainty]") {
  UncertaintyModel model = model_of(0);
  CHECK(uncertainty_of(model, run_with({10}, 0.4), nullptr, 1, 1).unknown == std::vector<std::string>{"gemm"});
  model.of_fitted[gemm] = true;
  CHECK(uncertainty_of(model, run_with({10}, 0.4), nullptr, 1, 1).unknown.empty());
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
  run.steps[0].slow_nodes = {Duration::seconds(1), Duration::seconds(2)};
  run.steps[0].routes = {Duration::seconds(-1)};
  CHECK(sensitivity_of(run).families[gemm] == Approx(0.4));
  CHECK(sensitivity_of(run).slow_nodes[1] == Approx(0.2));
  CHECK(sensitivity_of(run).routes[0] == Approx(-0.1));
  run.steps[0].slopes.clear();
  CHECK(sensitivity_of(run).families[gemm] == 0);
  CHECK(sensitivity_of(run).slow_nodes.empty());
}

// Runs of one step of ten seconds on nodes each of which is slow with this probability.
UncertaintyModel model_of_nodes(double share, std::int64_t nodes) {
  UncertaintyModel model = model_of(0);
  model.slow_nodes.share = share;
  model.nodes = nodes;
  return model;
}

TEST_CASE("as many samples have slow nodes as nodes are slow", "[uncertainty]") {
  const double share = 0.02;
  const std::int64_t nodes = 50;
  const UncertaintyModel model = model_of_nodes(share, nodes);
  double drawn = 0;
  double without = 0;
  for (std::int64_t number = 0; number < model.samples; ++number) {
    const std::size_t slow = draw_sample(model, 1, number).slow_nodes.size();
    drawn += static_cast<double>(slow);
    without += slow == 0 ? 1 : 0;
  }
  const auto samples = static_cast<double>(model.samples);
  // Of 4,000 samples with one slow node on average: five standard errors are 5 / sqrt(4,000) = 0.08.
  CHECK(drawn / samples == Approx(share * nodes).margin(0.08));
  CHECK(without / samples == Approx(std::pow(1 - share, nodes)).margin(0.04));
  CHECK(draw_sample(model_of_nodes(0, nodes), 1, 0).slow_nodes.empty());
  CHECK(draw_sample(model_of_nodes(1, 3), 1, 0).slow_nodes.size() == 3);
}

TEST_CASE("a step waits for the slow node that delays it most", "[uncertainty]") {
  RunResult run = run_with({10});
  run.steps[0].slow_nodes = {Duration::seconds(0.5), Duration::seconds(1)};
  const Sensitivity sensitivity = sensitivity_of(run);
  Sample sample = draw_sample(model_of_nodes(0, 2), 1, 0);
  CHECK(sampled_run(run, sensitivity, sample).step_time_s == Approx(10));
  sample.slow_nodes = {0.1};
  CHECK(sampled_run(run, sensitivity, sample).step_time_s == Approx(10.5));
  sample.slow_nodes = {0.1, 0.9, 0.2};
  CHECK(sampled_run(run, sensitivity, sample).step_time_s == Approx(11));

  // All nodes are slow in every sample: the interval is of one value.
  const Uncertainty always = uncertainty_of(model_of_nodes(1, 1000), run, nullptr, 1, 1);
  CHECK(always.step_time_s.p5 == Approx(11));
  CHECK(always.step_time_s.p95 == Approx(11));
  const Uncertainty seldom = uncertainty_of(model_of_nodes(0.02, 2), run, nullptr, 1, 1);
  CHECK(seldom.step_time_s.p50 == Approx(10));
  CHECK(seldom.shares.front().source == "slow nodes");
  CHECK_THAT(seldom.advice, Catch::Contains("slow"));
}

TEST_CASE("routes as they were simulated are as likely as each of the others", "[uncertainty]") {
  RunResult run = run_with({10});
  run.steps[0].routes = {Duration::seconds(1), Duration::seconds(2), Duration::seconds(3)};
  const Uncertainty found = uncertainty_of(model_of(0), run, nullptr, 1, 1);
  // Four values, one second apart, of equal weight: their deviation is sqrt(5) / 2 seconds.
  CHECK(found.step_time_s.mean == Approx(11.5).margin(0.1));
  CHECK(found.step_time_s.p5 == Approx(10));
  CHECK(found.step_time_s.p95 == Approx(13));
  CHECK(found.shares.front().source == "routes");
  CHECK(found.shares.front().deviation == Approx(std::sqrt(5.0) / 2 / 10).epsilon(0.05));
  CHECK_THAT(found.advice, Catch::Contains("routing"));
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
