// Noise, faults, failures, uncertainty, overheads and loading in whole studies.

#include <cmath>

#include "sim/run/runner.h"
#include "sim/run/step.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::Problems;
using test::StudyFile;

std::vector<Run> runs_of(const Study& study, std::size_t jobs = 2) {
  const auto runs = run_study(study, {.jobs = jobs});
  REQUIRE(runs);
  return *runs;
}

std::vector<Duration> times_of(const Run& run) {
  std::vector<Duration> times;
  for (const StepResult& step : run.result.steps) times.push_back(step.time);
  return times;
}

// One rank on one GPU: nothing waits for anything.
constexpr char one_gpu[] = R"(name: one
cluster: {preset: a100-rail-3tier, gpus: 8}
model: {preset: llama-7b, num_hidden_layers: 2}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 8Ki, tokens_per_step: 64Ki, steps: 3}
mesh: {tp: 1}
plans: [static]
)";

TEST_CASE("what a framework spends beside all else is added to every step and micro-batch", "[overheads]") {
  // Eight sequences of 8Ki are one micro-batch a rank.
  const StudyFile file(changed(one_gpu, "{preset: github}", "{fixed: 8Ki}"));
  const auto times_with = [&](const std::string& overheads) {
    return times_of(runs_of(file.load({"overheads=" + overheads})).front());
  };
  const std::vector<Duration> without = times_with("{}");
  const std::vector<Duration> in_steps = times_with("{per_step: 2 s}");
  const std::vector<Duration> in_both = times_with("{per_step: 2 s, per_micro_batch: 10 ms}");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK((in_steps[i] - without[i]).seconds() == 2);
    CHECK((in_both[i] - in_steps[i]).seconds() == 0.01);
  }
}

TEST_CASE("points that differ in their overheads alone do not share a world", "[overheads]") {
  const StudyFile file(one_gpu);
  const Study study = file.load({"sweep.overheads=[{}, {per_step: 1 s}]"});
  CHECK(study.points[0].world != study.points[1].world);
}

TEST_CASE("overheads that cannot be are refused with their places", "[overheads]") {
  const StudyFile file(changed(one_gpu, "mesh:", "overheads: {per_step: -1 s, per_micro_batch: 3, per_day: 1}\nmesh:"));
  CHECK(file.problems() == Problems{"6:23: 'per_step' is -1 s, it must be from 0 s to 3600 s",
                                    "6:46: \"3\" has no unit", "6:49: 'overheads' has no key 'per_day'"});
}

TEST_CASE("a fault slows the kernels of its device by its factor, from its step on", "[faults]") {
  const StudyFile file(one_gpu);
  const Study sound = file.load();
  const Study faulty = file.load({"faults=[{device: 5, from_step: 1, slowdown: 1.5}]"});
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto world = sound.points[0].make_world();
    const SimulatedStep before = simulate_step(sound.points[0], 0, step, *world);
    const SimulatedStep after = simulate_step(faulty.points[0], 0, step, *world);
    for (std::size_t rank = 0; rank < 8; ++rank) {
      const double factor = rank == 5 && step >= 1 ? 1.5 : 1;
      for (const Activity kernels : {Activity::attention, Activity::linear, Activity::optimizer}) {
        const auto nominal = static_cast<double>(before.ranks[rank][kernels].picoseconds());
        const auto found = static_cast<double>(after.ranks[rank][kernels].picoseconds());
        CHECK(found == Approx(factor * nominal).epsilon(1e-6));
      }
      CHECK(after.ranks[rank].total() == after.result.time);
    }
    CHECK((after.result.time > before.result.time) == (step >= 1));
  }
}

TEST_CASE("a world forgets the faults of another point", "[faults]") {
  const StudyFile file(one_gpu);
  const Study study =
      file.load({"sweep=[{label: before}, {label: slow, set: {faults: [{device: 5, slowdown: 3}]}}, {label: after}]"});
  REQUIRE(study.points[0].world == study.points[2].world);
  const std::vector<Run> runs = runs_of(study, 1);
  CHECK(times_of(runs[0]) == times_of(runs[2]));
  CHECK(times_of(runs[0]) != times_of(runs[1]));
}

TEST_CASE("a planner that knows of a fault gives its rank less", "[faults]") {
  const StudyFile file(
      changed(changed(good_study, "plans: [static, hdp-naive]", "plans: [hdp-balance]"), "steps: 2", "steps: 4"));
  const std::string fault = "faults=[{device: 17, slowdown: 2}]";
  const Run sound = runs_of(file.load()).front();
  const Run unaware = runs_of(file.load({fault})).front();
  const Run aware = runs_of(file.load({fault, "planner.knows=[faults]"})).front();
  const double nominal = sound.metrics.step_time_s.mean;
  // 15 of 16 ranks at full speed and one at half could do it in 16 / 15.5 of the time.
  CHECK(unaware.metrics.step_time_s.mean > 1.3 * nominal);
  CHECK(aware.metrics.step_time_s.mean < 1.1 * nominal);
  CHECK(aware.metrics.step_time_s.mean > nominal);
}

TEST_CASE("policies that look at no load plan the same whatever they know", "[faults]") {
  const StudyFile file(good_study);
  const std::string fault = "faults=[{device: 17, slowdown: 2}]";
  const std::vector<Run> unaware = runs_of(file.load({fault}));
  const std::vector<Run> aware = runs_of(file.load({fault, "planner.knows=[speeds, faults]"}));
  for (std::size_t run = 0; run < unaware.size(); ++run) CHECK(times_of(unaware[run]) == times_of(aware[run]));
}

TEST_CASE("noise lengthens the step, since the slowest rank decides, and all grains agree on it", "[noise]") {
  const StudyFile file(good_study);
  const Run sound = runs_of(file.load({"plans=[static]"})).front();
  const std::vector<std::string> noisy = {"plans=[static]", "noise={device: {cv: 0.03}, step: {cv: 0.03}}"};
  const Run fluid = runs_of(file.load(noisy)).front();
  CHECK(fluid.metrics.step_time_s.mean > sound.metrics.step_time_s.mean);
  std::vector<std::string> exact = noisy;
  exact.emplace_back("grain=exact");
  CHECK(fluid.metrics.step_time_s.mean ==
        Approx(runs_of(file.load(exact)).front().metrics.step_time_s.mean).epsilon(0.02));
}

TEST_CASE("noisy, resampled studies do not depend on the number of threads", "[noise][uncertainty]") {
  const StudyFile file(good_study);
  const Study study = file.load(
      {"noise={step: {cv: 0.05}}", "uncertainty={errors: {gemm: 0.05}}", "compare_to=static", "data.steps=5"});
  const std::vector<Run> one = runs_of(study, 1);
  const std::vector<Run> three = runs_of(study, 3);
  for (std::size_t run = 0; run < one.size(); ++run) {
    CHECK(times_of(one[run]) == times_of(three[run]));
    CHECK(one[run].metrics.uncertainty->step_time_s.p95 == three[run].metrics.uncertainty->step_time_s.p95);
    CHECK(one[run].metrics.uncertainty->speedup->p5 == three[run].metrics.uncertainty->speedup->p5);
  }
}

TEST_CASE("to first order a resampled family says what a new simulation says", "[uncertainty]") {
  const StudyFile file(good_study);
  const Study study = file.load({"uncertainty={steps: 2}"});
  const StudyPoint& point = study.points[0];
  const std::vector<Run> runs = runs_of(study);
  for (std::size_t plan = 0; plan < 2; ++plan) {
    const auto elastic = sensitivity_of(runs[plan].result).families;
    double sum = 0;
    for (std::size_t family = 0; family < cost_families; ++family) {
      const double factor = 1.08;
      FamilyFactors factors;
      factors[static_cast<CostFamily>(family)] = factor;
      const auto world = point.make_world(factors);
      double seconds = 0;
      double nominal = 0;
      for (std::int64_t step = 0; step < 2; ++step) {
        seconds += simulate_step(point, plan, step, *world).result.time.seconds();
        nominal += runs[plan].result.steps[static_cast<std::size_t>(step)].time.seconds();
      }
      CAPTURE(plan, cost_family_name(static_cast<CostFamily>(family)));
      CHECK(seconds / nominal == Approx(1 + elastic[family] * (factor - 1)).margin(0.003));
      sum += elastic[family];
    }
    CHECK(sum == Approx(1).margin(0.03));  // all costs 1 % up: the step 1 % up, where nothing is of a data sheet
  }
}

TEST_CASE("a slow node changes a step of an interval as a fault of that node does", "[uncertainty]") {
  const StudyFile file(good_study);
  const double slowdown = 1.3;
  const Study study = file.load({fmt::format("uncertainty={{steps: 1, slow_nodes: {{slowdown: {}}}}}", slowdown)});
  const PointSpec& spec = study.points[0].spec;
  const std::vector<NodeId> nodes = probed_nodes(*spec.uncertainty, spec.nodes, spec.cluster);
  REQUIRE(nodes.size() == static_cast<std::size_t>(std::min<std::int64_t>(4, spec.nodes.count(spec.cluster))));
  const std::vector<Run> runs = runs_of(study);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Study faulty = file.load({fmt::format("faults=[{{node: {}, slowdown: {}}}]", nodes[i].index(), slowdown)});
    const std::vector<Run> slower = runs_of(faulty);
    for (std::size_t plan = 0; plan < runs.size(); ++plan) {
      const StepResult& step = runs[plan].result.steps[0];
      CAPTURE(i, plan);
      CHECK(step.time + step.slow_nodes.at(i) == slower[plan].result.steps[0].time);
      CHECK(step.slow_nodes[i] > Duration{});
      CHECK(step.routes.empty());
    }
  }
}

TEST_CASE("switches that choose routes by a hash have others in intervals", "[uncertainty]") {
  const StudyFile file(good_study);
  const Study study = file.load({"uncertainty={steps: 1, slow_nodes: {share: 0}}", "cluster.routing=ecmp"});
  const PointSpec& spec = study.points[0].spec;
  const std::vector<ClusterSpec> others = rerouted(*spec.uncertainty, spec.cluster);
  REQUIRE(others.size() == 4);
  for (const Run& run : runs_of(study)) {
    const StepResult& step = run.result.steps[0];
    CHECK(step.slow_nodes.empty());
    REQUIRE(step.routes.size() == others.size());
    const std::string seed = fmt::format("cluster.routing={{policy: ecmp, seed: {}}}", others[0].routing.seed);
    CHECK(others[0].routing.seed <= 1000000000000000);
    for (const Run& other : runs_of(file.load({seed}))) {
      if (other.info.plan == run.info.plan) CHECK(step.time + step.routes[0] == other.result.steps[0].time);
    }
  }
}

TEST_CASE("the errors of a measured profile are its residuals; one that is supposed comes before them",
          "[uncertainty]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = load_study(HDPSIM_SOURCE_DIR "/configs/studies/laptop.yaml", {"profile=epyc-cpu"}, catalog);
  const PointSpec& spec = study.points[0].spec;
  UncertaintyOptions options;
  const FamilyErrors measured = errors_of(options, *spec.profile, spec.model.head_dim);
  options.supposed[static_cast<std::size_t>(CostFamily::gemm)] = 0.5;
  const FamilyErrors supposed = errors_of(options, *spec.profile, spec.model.head_dim);
  for (const CostFamily family : {CostFamily::attention_forward, CostFamily::attention_backward, CostFamily::gemm,
                                  CostFamily::memory_bound, CostFamily::messages}) {
    const auto i = static_cast<std::size_t>(family);
    CAPTURE(cost_family_name(family));
    REQUIRE(measured[i].known());
    CHECK(measured[i].deviation() > 0);
    CHECK(supposed[i].deviation() == (family == CostFamily::gemm ? 0.5 : measured[i].deviation()));
  }
}

TEST_CASE("elasticities are taken on as many steps as were asked for, spread over the run", "[uncertainty]") {
  for (const std::int64_t wanted : {1, 3, 4, 50}) {
    for (const std::int64_t steps : {1, 4, 10, 50}) {
      UncertaintyOptions options;
      options.steps = wanted;
      std::int64_t taken = 0;
      for (std::int64_t step = 0; step < steps; ++step) taken += takes_elasticities(options, step, steps) ? 1 : 0;
      CHECK(taken == std::min(wanted, steps));
    }
  }
}

TEST_CASE("a loader that cannot keep up is waited for, and the parts still sum to the step", "[loading]") {
  const StudyFile file(one_gpu);
  const std::vector<Run> free = runs_of(file.load());
  // 64Ki tokens at a token a microsecond: 65.536 ms a step; without prefetch every step waits for all of it.
  const Run slow =
      runs_of(file.load({"loading={style: remote, bytes_per_token: 4 B, tokens_per_s: 1M, prefetch: 0}"})).front();
  const Duration wait = Duration::picoseconds(65'536'000'000);
  for (std::size_t step = 0; step < 3; ++step) {
    const StepResult& with = slow.result.steps[step];
    CHECK(with.time == free.front().result.steps[step].time + wait);
    CHECK(with.mean[Activity::data_wait] == wait);
    CHECK(with.mean.total() == with.time);
    CHECK(with.memory.host > free.front().result.steps[step].memory.host);
  }
  for (const Breakdown& rank : slow.result.ranks) CHECK(rank[Activity::data_wait] == wait);
  CHECK(slow.metrics.breakdown.total() == slow.result.ranks.front().total());
  const Run hidden =
      runs_of(file.load({"loading={style: remote, bytes_per_token: 4 B, tokens_per_s: 1M, prefetch: 1}"})).front();
  CHECK(hidden.metrics.breakdown[Activity::data_wait] == Duration{});
}

TEST_CASE("loaders of each source: a step waits for the slowest, and growing numbers end that", "[loading]") {
  const StudyFile file(one_gpu);
  const std::vector<Run> free = runs_of(file.load());
  const std::string sources =
      "loading={style: actors, bytes_per_token: 4 B, sources: [{name: web, weight: 3, "
      "tokens_per_s: 1M, access: 1 GB}, {name: books, access: 1 GB}], prefetch: 0";
  // Three quarters of 64Ki tokens at a token a microsecond.
  const Duration wait = Duration::picoseconds(49'152'000'000);
  const Run slow = runs_of(file.load({sources + "}"})).front();
  for (std::size_t step = 0; step < 3; ++step) {
    const StepResult& with = slow.result.steps[step];
    CHECK(with.time == free.front().result.steps[step].time + wait);
    CHECK(with.mean[Activity::data_wait] == wait);
    CHECK(with.mean.total() == with.time);
    REQUIRE(with.loaders);
    CHECK(with.loaders->waited_for == "web");
    CHECK(with.loaders->loaders == 2);
    // Files of both, and the batch as samples and as a batch.
    CHECK(with.loaders->memory.all == Bytes(2'000'000'000 + 2 * 4 * 65536));
    CHECK(with.memory.host == free.front().result.steps[step].memory.host + with.loaders->memory.all / 8);
  }
  CHECK(slow.metrics.loaders->most.memory == slow.result.steps[0].loaders->memory);
  CHECK(!free.front().metrics.loaders);

  // Loaders for many times the demand: the second step has them, and their memory.
  const Run scaled = runs_of(file.load({sources + ", autoscale: {window: 1, headroom: 100}}"})).front();
  const StepResult& last = scaled.result.steps.back();
  CHECK(last.mean[Activity::data_wait] < wait);
  CHECK(last.loaders->loaders > 2);
  CHECK(last.memory.host == free.front().result.steps.back().memory.host + last.loaders->memory.all / 8);
  CHECK(scaled.metrics.loaders->events.front().kind == LoaderEvent::Kind::added);
}

TEST_CASE("what is wrong with noise, faults, failures, uncertainty and loading is told at once", "[study]") {
  const StudyFile file(std::string(good_study) + R"(noise: {step: {cv: -1}}
faults: [{device: 99, from_step: 7, slowdown: 0.5}]
failures: {node_mtbf: 0 h, checkpoint: 60}
uncertainty: {samples: 1, errors: {gems: 0.1}}
loading: {style: remote}
planner: {knows: [weather]}
)");
  const Problems problems = file.problems();
  CHECK(problems.size() == 10);
  for (const std::string& problem : problems) CHECK(std::stoi(problem) >= 12);  // each at its own line
}

}  // namespace
}  // namespace hdpsim
