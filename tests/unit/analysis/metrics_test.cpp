#include "sim/analysis/metrics.h"

#include <cmath>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Breakdown breakdown(Duration attention, Duration waiting) {
  Breakdown breakdown;
  breakdown[Activity::attention] = attention;
  breakdown[Activity::group_wait] = waiting;
  return breakdown;
}

StepResult step(std::int64_t index, Duration time) {
  StepResult result;
  result.step = index;
  result.tokens = 1000;
  result.model_flops = 6e12;
  result.time = time;
  result.mean = breakdown(time - 1_ps, 1_ps);
  return result;
}

RunResult run_of(std::vector<Duration> times) {
  RunResult result;
  for (std::size_t i = 0; i < times.size(); ++i) result.steps.push_back(step(static_cast<std::int64_t>(i), times[i]));
  result.ranks.resize(2);
  return result;
}

RunInfo info_of(const std::string& plan, std::size_t point = 0) {
  RunInfo info;
  info.plan = plan;
  info.point = point;
  info.gpus = 4;
  info.peak = 1_TFLOPs;
  info.device_memory = 80_GiB;
  return info;
}

TEST_CASE("a percentile lies between its neighbours in proportion", "[metrics]") {
  // Four values have places 0 to 3: the median is at 1.5, p5 at 0.15, p95 at 2.85.
  const std::vector<double> values = {40, 10, 30, 20};
  CHECK(percentile(values, 0) == 10);
  CHECK(percentile(values, 0.05) == Approx(11.5));
  CHECK(percentile(values, 0.5) == Approx(25));
  CHECK(percentile(values, 0.95) == Approx(38.5));
  CHECK(percentile(values, 1) == 40);
  CHECK(percentile({7}, 0.95) == 7);
}

TEST_CASE("a percentile of nothing is a bug", "[metrics]") {
  CHECK_THROWS_AS(percentile({}, 0.5), CheckFailure);
}

TEST_CASE("tokens a second, MFU and step time come from the sums over the steps", "[metrics]") {
  // 1 s + 3 s for 2 x 1000 tokens and 2 x 6 TFLOP on 4 GPUs of 1 TFLOP/s.
  const RunMetrics metrics = metrics_of(info_of("static"), run_of({1_s, 3_s}));
  CHECK(metrics.steps == 2);
  CHECK(metrics.step_time_s.mean == 2);
  CHECK(metrics.step_time_s.p50 == 2);
  CHECK(metrics.step_time_s.p5 == Approx(1.1));
  CHECK(metrics.tokens_per_s == 500);
  CHECK(metrics.tokens_per_s_per_gpu == 125);
  CHECK(metrics.mfu == Approx(12.0 / 16));
}

TEST_CASE("the breakdown of a run sums to its mean step time to the picosecond", "[metrics]") {
  const RunMetrics metrics = metrics_of(info_of("static"), run_of({1_s, 1_s + 1_ps, 1_s + 1_ps}));
  CHECK(metrics.breakdown.total() == 1_s);  // (3 s + 2 ps) / 3, rounded down
  CHECK(metrics.step_time_s.mean == 1);
}

TEST_CASE("what rounding loses goes to the largest activity", "[metrics]") {
  // Sums 5 ps and 4 ps over 2: 2.5 and 2, together 4.5, in whole picoseconds 4 = 2 + 2.
  BreakdownMean even;
  even.add(breakdown(3_ps, 2_ps));
  even.add(breakdown(2_ps, 2_ps));
  CHECK(even.mean()[Activity::attention] == 2_ps);
  CHECK(even.mean()[Activity::group_wait] == 2_ps);

  // Sums 5 ps and 3 ps over 2: 2.5 and 1.5, together 4.
  BreakdownMean odd;
  odd.add(breakdown(3_ps, 1_ps));
  odd.add(breakdown(2_ps, 2_ps));
  CHECK(odd.mean()[Activity::attention] == 3_ps);
  CHECK(odd.mean()[Activity::group_wait] == 1_ps);
}

TEST_CASE("the mean of long steps does not overflow", "[metrics]") {
  BreakdownMean mean;
  for (int i = 0; i < 10'000; ++i) mean.add(breakdown(1'000'000_s, 0_s));  // 1e10 s in all, Duration ends at 9.2e6 s
  CHECK(mean.mean()[Activity::attention] == 1'000'000_s);
}

TEST_CASE("the speed-up is the ratio of mean step times, its interval that of the steps", "[metrics]") {
  // Ratios step by step: 4, 2, 1; means 12 / 3 against 6 / 3.
  const Speedup speedup = speedup_over("static", run_of({4_s, 4_s, 4_s}), run_of({1_s, 2_s, 3_s}));
  CHECK(speedup.versus == "static");
  CHECK(speedup.mean == 2);
  CHECK(speedup.p5 == Approx(4.0 / 3 + 0.1 * (2 - 4.0 / 3)));
  CHECK(speedup.p95 == Approx(2 + 0.9 * 2));
}

TEST_CASE("speed-ups compare the times of a token where plans train unlike numbers of them", "[metrics]") {
  RunResult half = run_of({1_s, 1_s});
  half.steps[0].tokens = 500;  // of 1,000, and 1,000 of 1,000
  const Speedup speedup = speedup_over("static", run_of({2_s, 2_s}), half);
  CHECK(speedup.mean == 2 * 0.75);
  CHECK(speedup.p5 == Approx(1 + 0.05));
  CHECK(speedup.p95 == Approx(1 + 0.95));
}

TEST_CASE("each run is compared with the baseline of its own point", "[metrics]") {
  std::vector<Run> runs = {{info_of("hdp", 0), run_of({1_s}), {}},
                           {info_of("static", 0), run_of({2_s}), {}},
                           {info_of("hdp", 1), run_of({1_s}), {}},
                           {info_of("static", 1), run_of({5_s}), {}}};
  evaluate(runs, "static");
  CHECK(runs[0].metrics.speedup->mean == 2);
  CHECK(runs[1].metrics.speedup->mean == 1);
  CHECK(runs[2].metrics.speedup->mean == 5);
  evaluate(runs, std::nullopt);
  CHECK_FALSE(runs[0].metrics.speedup.has_value());
}

TEST_CASE("time that no kernel estimate covers rests on formulas", "[metrics]") {
  RunResult result = run_of({2_s});  // two ranks: 4 rank seconds
  result.steps[0].evidence[static_cast<std::size_t>(Evidence::interpolated)] += 1_s;
  result.steps[0].evidence[static_cast<std::size_t>(Evidence::formula)] += 1_s;
  const RunMetrics metrics = metrics_of(info_of("static"), result);
  CHECK(metrics.evidence[static_cast<std::size_t>(Evidence::interpolated)] == 0.25);
  CHECK(metrics.evidence[static_cast<std::size_t>(Evidence::formula)] == 0.75);
}

TEST_CASE("a run fits if its fullest step fits", "[metrics]") {
  RunResult result = run_of({1_s, 1_s});
  result.steps[1].memory.device = 80_GiB;
  CHECK(metrics_of(info_of("static"), result).fits);
  result.steps[1].memory.device = 80_GiB + 1_B;
  CHECK_FALSE(metrics_of(info_of("static"), result).fits);
  result.steps[1].memory = {1_GiB, 1_B};  // and no host memory
  CHECK_FALSE(metrics_of(info_of("static"), result).fits);
}

TEST_CASE("memory is at risk where it fits with the gaps that are counted, and not with the largest measured",
          "[metrics]") {
  // 100 GB are allocated, 1 GB lies outside of the allocator. Gaps of 4.7 % may be 9.3 %.
  MemoryUse memory;
  memory.parts[MemoryPart::activations] = Bytes(100'000'000'000);
  memory.parts[MemoryPart::fragmentation] = Bytes(4'700'000'000);
  memory.parts[MemoryPart::reserve] = Bytes(1'000'000'000);
  memory.device = memory.parts.total();
  CHECK(with_largest_gaps(memory).gigabytes() == Approx(100 * 1.093 + 1));
  const auto fit_in = [&](double gigabytes) { return fit_of(memory, {Bytes(std::llround(gigabytes * 1e9)), Bytes{}}); };
  CHECK(fit_in(110.4) == MemoryFit::fits);
  CHECK(fit_in(110.2) == MemoryFit::at_risk);
  CHECK(fit_in(105.8) == MemoryFit::at_risk);
  CHECK(fit_in(105.6) == MemoryFit::no);
  CHECK(risk_text(memory, {Bytes(110'000'000'000), Bytes{}}) ==
        "106 GB of 110 GB on a device, 110 GB where the allocator leaves gaps of 9.3 % and not of 4.7 %");
  // Without gaps there is nothing to be wrong about; a host has none.
  memory.parts[MemoryPart::fragmentation] = {};
  memory.device = memory.parts.total();
  CHECK(fit_in(101) == MemoryFit::fits);
  memory.host = 1_B;
  CHECK(fit_in(101) == MemoryFit::no);
}

TEST_CASE("a run at risk fits, and a plan beyond the capacity does not", "[metrics]") {
  Run run{info_of("static"), run_of({1_s}), {}};
  MemoryUse& memory = run.result.steps[0].memory;
  memory.parts[MemoryPart::activations] = 76_GiB;
  memory.parts[MemoryPart::fragmentation] = memory.parts[MemoryPart::activations].scaled(0.047);
  memory.device = memory.parts.total();  // 79.6 of 80 GiB, and 83.1 with gaps of 9.3 %
  run.metrics = metrics_of(run.info, run.result);
  CHECK(run.metrics.fits);
  CHECK(fit_of(run) == MemoryFit::at_risk);
  run.result.steps[0].tokens_held = run.info.capacity + 1;
  run.metrics = metrics_of(run.info, run.result);
  CHECK(fit_of(run) == MemoryFit::no);
  CHECK(risk_text(run).empty());
}

TEST_CASE("busy times leave out the waits for others", "[metrics]") {
  Timeline timeline;
  timeline.step_time = 10_s;
  timeline.ranks = {breakdown(10_s, 0_s), breakdown(4_s, 6_s)};
  const BusyTimes busy = busy_times(timeline);
  CHECK(busy.min == 4_s);
  CHECK(busy.mean == 7_s);
  CHECK(busy.max == 10_s);
  CHECK(busy.deviation == 3_s);
}

TEST_CASE("model FLOPs count exact causal areas and every token", "[metrics]") {
  Transformer model;
  model.layers = 2;
  model.hidden = 8;
  model.heads = 2;
  model.kv_heads = 2;
  model.head_dim = 4;
  model.ffn_hidden = 16;
  model.vocabulary = 10;
  // Sequences of 3 and 1 tokens: areas 6 and 1. Forward 4 x heads x head_dim = 32 a pair, backward 2.5 times that, 2
  // layers.
  const double attention = 2 * 3.5 * 32 * 7;
  // A layer: q, k, v, o 4 x 8 x 8 and the gated MLP 3 x 8 x 16; the output matrix 8 x 10; 6 each a token.
  const double linear = 6.0 * 4 * (2 * (4 * 64 + 3 * 128) + 80);
  CHECK(model_flops(model, Batch{{{3, 0}, {1, 1}}}).count() == Approx(attention + linear).epsilon(0.01));
}

TEST_CASE("model FLOPs count what the tokens of each kind of layer see", "[metrics]") {
  Transformer full;
  full.hidden = 8;
  full.heads = full.kv_heads = 2;
  full.head_dim = 4;
  full.ffn_hidden = 16;
  full.vocabulary = 10;
  Transformer windowed = full;
  windowed.window = 2;
  Transformer model = full;
  set_layers(model, {windowed, windowed, full});
  // Five tokens see 1, 2, 2, 2 and 2 through a window of two, and 15 pairs without one.
  const double area = 2 * 9 + 15;
  const double linear = training_linear_flops(model, 5).count();
  CHECK(model_flops(model, Batch{{{5, 0}}}).count() == Approx(3.5 * 32 * area + linear));
  full.layers = 3;
  CHECK(training_linear_flops(full, 5).count() == linear);
}

}  // namespace
}  // namespace hdpsim
