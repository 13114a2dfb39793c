#include "sim/run/runner.h"

#include <atomic>
#include <stdexcept>

#include "sim/run/step.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

Study tiny_study() {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return load_study(HDPSIM_SOURCE_DIR "/configs/studies/tiny.yaml", {}, catalog);
}

TEST_CASE("a step is simulated for every rank and sums to its time", "[runner]") {
  const Study study = tiny_study();
  const auto world = study.points[0].make_world();
  const SimulatedStep step = simulate_step(study.points[0], 2, 1, *world);
  CHECK(step.result.step == 1);
  CHECK(step.result.tokens == 1 << 20);
  REQUIRE(step.ranks.size() == 16);
  for (const Breakdown& rank : step.ranks) CHECK(rank.total() == step.result.time);
  CHECK(step.result.mean.total() == step.result.time);
}

TEST_CASE("all plans of a point see the same batches", "[runner]") {
  const Study study = tiny_study();
  const auto runs = run_study(study, {.jobs = 2});
  REQUIRE(runs);
  REQUIRE(runs->size() == 6);
  for (std::size_t step = 0; step < 4; ++step) {
    CHECK((*runs)[0].result.steps[step].sequences == (*runs)[2].result.steps[step].sequences);
    CHECK((*runs)[0].result.steps[step].model_flops == (*runs)[2].result.steps[step].model_flops);
  }
  CHECK((*runs)[0].metrics.speedup->mean == 1);
}

TEST_CASE("progress counts every step once and names every run once", "[runner]") {
  const Study study = tiny_study();
  std::size_t calls = 0;
  std::size_t finished = 0;
  RunnerOptions options;
  options.jobs = 3;
  options.report = [&](const Progress& progress) {
    CHECK(progress.steps_done == ++calls);
    finished += progress.finished == nullptr ? 0 : 1;
    CHECK(progress.runs_done == finished);
  };
  REQUIRE(run_study(study, options));
  CHECK(calls == 6 * 4);
  CHECK(finished == 6);
}

TEST_CASE("the steps of a run may add up to more time than one step can take", "[runner]") {
  const test::StudyFile file(test::good_study);
  const Study study =
      file.load({"overheads={per_step: 3600 s}", "cluster.gpus=8", "plans=[static]",
                 "data={lengths: {fixed: 1Ki}, context: 1Ki, tokens_per_step: 2Ki, steps: 2600}"});  // 108 days
  const auto runs = run_study(study, {});
  REQUIRE(runs);
  CHECK((*runs)[0].metrics.step_time_s.mean > 3600);
}

TEST_CASE("a study that is stopped gives no runs", "[runner]") {
  const Study study = tiny_study();
  std::atomic<int> asked = 0;
  RunnerOptions options;
  options.jobs = 2;
  options.stop = [&] { return ++asked > 3; };
  CHECK_FALSE(run_study(study, options));
}

// Results with all that they say but the time that they took.
std::vector<std::string> texts_without_phases(std::vector<Run> runs) {
  std::vector<std::string> texts;
  for (Run& run : runs) {
    for (StepResult& step : run.result.steps) step.phases = {};
    texts.push_back(run_text(run.result));
  }
  return texts;
}

TEST_CASE("steps that are known are taken, and give the runs that they would have given", "[runner]") {
  // Batches are loaded, so that what a step waits depends on the steps around it.
  const test::StudyFile file(test::good_study);
  Study study =
      file.load({"data.steps=5", "loading={style: remote, bytes_per_token: 4 B, tokens_per_s: 1M, prefetch: 1}"});
  const auto plain = texts_without_phases(*run_study(study, {}));
  KnownSteps known;
  study.points.front().spec.steps = 2;
  (void)run_study(study, {.jobs = 2, .known = &known});
  study.points.front().spec.steps = 5;

  class Counter final : public StepWatcher {
   public:
    void see(const StepTask& task, const Program&, const Timeline&, const Machine&) override {
      CHECK(task.step >= 2);
      ++steps;
    }
    std::atomic<int> steps = 0;
  } counter;
  CHECK(texts_without_phases(*run_study(study, {.jobs = 2, .known = &known, .watcher = &counter})) == plain);
  CHECK(counter.steps == 2 * 3);
}

TEST_CASE("steps without room are simulated again", "[runner]") {
  const Study study = tiny_study();
  const auto world = study.points[0].make_world();
  const KnownStep step{simulate_step(study.points[0], 0, 0, *world), {}};
  const std::size_t entries = step.step.ranks.size() + step.step.links.main.bytes.size();
  KnownSteps small(entries - 1);
  small.keep(0, step);
  CHECK(small.find(0, 0) == nullptr);
  KnownSteps enough(entries);
  enough.keep(0, step);
  enough.keep(1, step);
  REQUIRE(enough.find(0, 0) != nullptr);
  CHECK(enough.find(0, 0)->step.result.time == step.step.result.time);
  CHECK(enough.find(1, 0) == nullptr);
  CHECK(enough.find(0, 1) == nullptr);
}

TEST_CASE("what a thread throws reaches the caller", "[runner]") {
  const Study study = tiny_study();
  RunnerOptions options;
  options.jobs = 4;
  options.report = [](const Progress& progress) {
    if (progress.steps_done == 5) throw std::runtime_error("enough");
  };
  CHECK_THROWS_WITH(run_study(study, options), "enough");
}

TEST_CASE("parameters that are gathered beside rings on shared links hold the layers up in every grain", "[run]") {
  // Two GPUs of a node share an uplink, and the rings of its two ranks meet there. A gather takes longer than a layer,
  // and four layers wait for four gathers.
  const test::StudyFile file(R"(name: shared
cluster: {preset: a100-rail-3tier, gpus: 8, node: {nvlink: ~, pcie: {gpus_per_uplink: 2}}}
model: {preset: llama-7b, num_hidden_layers: 4}
profile: bytescale-implied
data: {lengths: {fixed: 2Ki}, context: 2Ki, tokens_per_step: 32Ki, steps: 1}
mesh: {tp: 4, capacity: 1Ki, zero: 3}
plans: [static]
sweep: {grain: [fluid, exact]}
)");
  const auto runs = run_study(file.load(), {});
  REQUIRE(runs->size() == 2);
  for (const Run& run : *runs) {
    for (const Activity activity : all_activities) CHECK(run.metrics.breakdown[activity] >= Duration{});
  }
  CHECK(runs->at(0).metrics.step_time_s.mean == Approx(runs->at(1).metrics.step_time_s.mean).epsilon(0.01));
}

}  // namespace
}  // namespace hdpsim
