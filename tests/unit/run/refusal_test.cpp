#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/run/explain.h"
#include "sim/run/impl/study_letters.h"
#include "sim/run/run_record.h"
#include "sim/run/runner.h"
#include "sim/run/step.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using Overrides = std::vector<std::string>;

/// With 230 micro-batches for each of two replicas, a step of fewer than 460 sequences has no plan. The entry is at
/// 13:5.
constexpr char demanding[] = "megatron-dp-balanced: {micro_batches_divided_by: 230}";

test::StudyFile study_file() {
  return test::StudyFile(test::changed(test::good_study, "plans: [static, hdp-naive]",
                                       fmt::format("plans:\n  - static\n  - {}\n  - hdp-naive", demanding)));
}

Study study_with(const Overrides& more = {}) {
  Overrides all = {"data.steps=4"};
  all.insert(all.end(), more.begin(), more.end());
  return study_file().load(all);
}

// The steps of a plan that its policy refuses, asked one by one.
std::vector<std::int64_t> refused_steps(const StudyPoint& point, std::size_t plan) {
  std::vector<std::int64_t> refused;
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    try {
      (void)make_plan(point, plan, step, point.batches->step(step));
    } catch (const PlanRefused& error) {
      CHECK(error.refusal().step == step);
      refused.push_back(step);
    }
  }
  return refused;
}

TEST_CASE("a policy that refuses a batch costs its own run alone, which says where and why", "[refusal]") {
  const Study study = study_with();
  const std::vector<std::int64_t> refused = refused_steps(study.points[0], 1);
  REQUIRE_FALSE(refused.empty());
  REQUIRE(refused_steps(study.points[0], 0).empty());
  const auto runs = run_study(study, {});
  REQUIRE(runs);
  CHECK_FALSE(runs->at(0).is_refused());
  CHECK_FALSE(runs->at(2).is_refused());
  const Run& run = runs->at(1);
  REQUIRE(run.is_refused());
  CHECK(run.result.refusal->step == refused.front());
  CHECK(run.result.steps.empty());
  CHECK_FALSE(run.metrics.speedup);
  CHECK_THAT(refusal_text(run), Catch::Contains("study.yaml:13:5: megatron-dp-balanced makes ") &&
                                    Catch::Contains("which it cannot split into a multiple of 460"));
  CHECK(refusal_text(runs->at(0)).empty());
}

TEST_CASE("the first refused step is told, whatever the number of threads", "[refusal]") {
  const Study study = study_with({"data.steps=12"});
  const std::vector<std::int64_t> refused = refused_steps(study.points[0], 1);
  REQUIRE(refused.size() > 1);
  for (const std::size_t jobs : {1U, 2U, 5U}) {
    std::size_t steps = 0;
    const auto runs =
        run_study(study, {.jobs = jobs, .report = [&](const Progress& progress) { steps = progress.steps_done; }});
    CHECK(runs->at(1).result.refusal->step == refused.front());
    CHECK(steps == 3 * 12);  // those that were not begun count as done
  }
}

TEST_CASE("runs at other points of a sweep are not refused, and nothing is compared with a refused baseline",
          "[refusal]") {
  const Study study = study_with({"sweep={data.tokens_per_step: [1Mi, 4Mi]}", "compare_to=megatron-dp-balanced"});
  const auto runs = run_study(study, {.jobs = 2});
  REQUIRE(runs->size() == 6);
  for (const Run& run : *runs) {
    CHECK(run.is_refused() == (run.info.point == 0 && run.info.plan == "megatron-dp-balanced"));
    CHECK(run.metrics.speedup.has_value() == (run.info.point == 1));
  }
}

TEST_CASE("a study of which every run is refused is wrong input at the entry of its plan", "[refusal]") {
  const test::StudyFile file(
      test::changed(test::good_study, "plans: [static, hdp-naive]", fmt::format("plans: [{}]", demanding)));
  const Study study = file.load({"data.steps=4"});
  const std::vector<std::string> problems = test::problems_of([&] { (void)run_study(study, {}); });
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].starts_with("11:9: megatron-dp-balanced makes "));
}

TEST_CASE("a refused run is kept, and not planned again when the study is continued", "[refusal][resume]") {
  const Study study = study_with();
  const test::TemporaryFolder folder;
  Journal journal = Journal::begin(folder.path() / journal_name, runs_title());
  const auto runs = run_study(study, {.journal = &journal});
  std::optional<std::size_t> steps;
  const auto again =
      run_study(study, {.journal = &journal, .report = [&](const Progress& progress) { steps = progress.steps; }});
  CHECK_FALSE(steps);  // nothing was simulated
  for (std::size_t i = 0; i < runs->size(); ++i) {
    CHECK(again->at(i).result.refusal == runs->at(i).result.refusal);
    CHECK(refusal_text(again->at(i)) == refusal_text(runs->at(i)));
  }
}

TEST_CASE("a refused run reaches process 0 as it is", "[refusal][sharing]") {
  StudyLetter letter{.kind = StudyLetter::Kind::done, .study = 0};
  letter.run.run = 3;
  letter.run.result.refusal = Refusal{7, "too \"long\"", "shorten it"};
  const auto read = study_letter(to_text(letter));
  REQUIRE(read);
  CHECK(read->run.run == 3);
  CHECK(read->run.result.refusal == letter.run.result.refusal);
}

TEST_CASE("what cannot be planned is explained by its refusal, beside the plans that run", "[refusal][explain]") {
  const Study study = study_with();
  const auto runs = run_study(study, {});
  const Catalog catalog(HDPSIM_SOURCE_DIR);
  const std::vector<Explanation> told = explain(study, *runs, {}, {.catalog = catalog});
  REQUIRE(told.size() == 3);
  CHECK(told[0].refusal.empty());
  CHECK(told[1].plan == "megatron-dp-balanced");
  CHECK(told[1].refusal == refusal_text(runs->at(1)));
  CHECK(told[2].step == typical_step(runs->at(0)));
  CHECK_THROWS_AS(explain(study, *runs, {.plan = "megatron-dp-balanced"}, {.catalog = catalog}), InputError);
}

}  // namespace
}  // namespace hdpsim
