#include "sim/study/study_plans.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/document/values.h"
#include "sim/plan/plan_file.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::good_study;
using test::Problems;
using test::StudyFile;

/// The good study with plans of files beside `static`, in its folder those that hdp-naive makes of its two steps.
class StudyWithFiles {
 public:
  explicit StudyWithFiles(const std::string& entry = "{file: plans/*.json}")
      : file_(test::changed(good_study, "[static, hdp-naive]", "\n  - static\n  - " + entry)) {
    std::filesystem::create_directory(file_.folder() / "plans");
    const Study naive = StudyFile(good_study).load();
    for (std::int64_t step = 0; step < 2; ++step) {
      const StudyPoint& point = naive.points[0];
      plans_.push_back(point.planners[1]->plan(point.batches->step(step), step));
      write(step);
    }
  }

  Plan& plan(std::int64_t step) { return plans_.at(static_cast<std::size_t>(step)); }
  void write(std::int64_t step) { add(name_of(step), plan_text(plan(step))); }
  void add(const std::string& name, const std::string& text) const { file_.add(name, text); }
  void remove(std::int64_t step) const { std::filesystem::remove(file_.folder() / name_of(step)); }
  [[nodiscard]] const StudyFile& file() const { return file_; }

  /// Problems with the names of their files.
  [[nodiscard]] Problems problems(const std::vector<std::string>& overrides = {}) const {
    Problems found;
    try {
      (void)file_.load(overrides);
    } catch (const InputError& error) {
      for (const Diagnostic& problem : error.diagnostics().sorted()) {
        const std::string name = std::filesystem::path(problem.position.file).filename().string();
        found.push_back(fmt::format("{}:{}: {}", name, problem.position.line, problem.message));
      }
    }
    return found;
  }

 private:
  static std::string name_of(std::int64_t step) { return fmt::format("plans/{}.json", step); }

  StudyFile file_;
  std::vector<Plan> plans_;
};

std::string second_name(const Study& study) {
  REQUIRE(study.plans.size() == 2);
  return study.plans[1].name;
}

TEST_CASE("plans of files stand beside policies, with a name of their own", "[plan-files]") {
  StudyWithFiles here;
  const Study study = here.file().load();
  CHECK(second_name(study) == "plans");
  const StudyPoint& point = study.points.at(0);
  const Plan plan = point.planners.at(1)->plan(point.batches->step(1), 1);
  CHECK(plan.policy == "plans");
  CHECK(plan.micro_batches == here.plan(1).micro_batches);
  CHECK(second_name(StudyWithFiles("{file: [plans/1.json, plans/0.json]}").file().load()) == "plans");
  CHECK(second_name(StudyWithFiles("{file: 'plans/?.json', name: mine}").file().load()) == "mine");
  here.remove(1);
  CHECK(second_name(here.file().load(
            {"data.steps=1", "plans.1={file: " + here.file().folder().string() + "/plans/0.json}"})) == "0");
}

TEST_CASE("the resolved study names its plan files wherever it lies", "[plan-files]") {
  const StudyWithFiles here;
  const Study study = here.file().load({"compare_to=plans"});
  CHECK(line_of(study.resolved.find("plans")->items.at(1)) ==
        "{file: " + (here.file().folder() / "plans/*.json").string() + ", name: plans}");
  const StudyFile elsewhere(to_yaml(study.resolved));
  const Study again = elsewhere.load();
  CHECK(again.plans[1].identity() == study.plans[1].identity());
  CHECK(to_yaml(again.resolved) == to_yaml(study.resolved));
}

TEST_CASE("a run of plan files is known by what the files hold", "[plan-files]") {
  StudyWithFiles here;
  const std::string before = here.file().load().plans[1].identity();
  CHECK(here.file().load({"plans.1.name=mine"}).plans[1].identity() == before);
  here.plan(0).policy = "another";
  here.write(0);
  CHECK(here.file().load().plans[1].identity() != before);
}

TEST_CASE("there is one plan file for each step", "[plan-files]") {
  const StudyWithFiles here;
  CHECK(here.problems({"data.steps=5"}) ==
        Problems{"study.yaml:13: 2 plans for the study's 5 steps: none for step 2, 3, 4"});
  CHECK(here.problems({"data.steps=9"}) ==
        Problems{"study.yaml:13: 2 plans for the study's 9 steps: none for step 2, 3, 4 and 4 more"});
  CHECK(here.problems({"data.steps=1"}) ==
        Problems{"study.yaml:13: 2 plans for the study's 1 step: step 1 is none of them"});
  StudyWithFiles twice;
  twice.plan(1).step = 0;
  twice.write(1);
  const Problems problems = twice.problems();
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0],
             Catch::StartsWith("1.json:0: this is a plan for step 0, as is ") && Catch::EndsWith("0.json"));
}

TEST_CASE("a plan of another batch is refused with the first difference", "[plan-files]") {
  const StudyWithFiles here;
  const Problems problems = here.problems({"data.seed=2"});
  REQUIRE(problems.size() == 2);  // a file each
  CHECK_THAT(problems[0], Catch::StartsWith("0.json:0: this is not the batch of step 0 of the study: sequence 0 has "));
  CHECK_THAT(problems[1], Catch::StartsWith("1.json:0: this is not the batch of step 1 of the study: sequence 0 has "));
}

TEST_CASE("plans of files are checked like any plan, all of them in one go", "[plan-files]") {
  StudyWithFiles here;
  here.plan(0).micro_batches[0].spans.pop_back();
  here.write(0);
  here.add("plans/1.json", "{\"schema\": \"hdpsim.plan/1\"}");
  const Problems problems = here.problems();
  REQUIRE(problems.size() > 2);
  // Each at the line of its sequence or micro-batch.
  CHECK_THAT(problems[0], Catch::Matches(R"(0\.json:[1-9]\d*: sequence \d+: tokens .* are in no micro-batch)"));
  CHECK(std::any_of(problems.begin(), problems.end(), [](const std::string& problem) {
    return problem.starts_with("0.json:") && !problem.starts_with("0.json:0:") &&
           problem.ends_with(": micro-batch 0 has no spans");
  }));
  CHECK_THAT(problems.back(), Catch::StartsWith("1.json:1: the plan needs "));
}

TEST_CASE("a plan for another pool is refused at its file", "[plan-files]") {
  const StudyWithFiles here;
  CHECK(here.problems({"mesh.tp=4"}) == Problems{"0.json:0: the plan is for 16 HDP ranks, the study has 8",
                                                 "1.json:0: the plan is for 16 HDP ranks, the study has 8"});
}

TEST_CASE("the cut that a plan states stays, and must go with the way in which keys travel", "[plan-files][cut]") {
  StudyWithFiles here;
  const auto shares = [](const MicroBatch& micro_batch) { return micro_batch.group.size() > 1; };
  std::vector<MicroBatch>& all = here.plan(1).micro_batches;
  const auto shared = std::find_if(all.begin(), all.end(), shares);
  REQUIRE(shared != all.end());
  shared->cut = TokenCut::dispatch;
  here.write(1);
  CHECK(here.problems() ==
        Problems{"1.json:0: its groups are cut 'dispatch': keys of dispatched chunks do not pass around a ring"});
  CHECK(here.problems({"mesh.cp_comm_type=a2a"}) ==
        Problems{"1.json:0: its groups are cut 'dispatch': with cp_comm_type: a2a ranks compute their heads of all "
                 "tokens, whoever holds these"});
  const Study study = here.file().load({"mesh.cp_comm_type=group_cast", "mesh.cp_cut=per_pack"});
  const StudyPoint& point = study.points.at(0);
  const Plan plan = point.planners.at(1)->plan(point.batches->step(1), 1);
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    const bool is_stated = micro_batch.spans == shared->spans;
    const TokenCut cut = is_stated ? TokenCut::dispatch : TokenCut::per_pack;
    CHECK(micro_batch.cut == (shares(micro_batch) ? cut : TokenCut::per_document));
  }
}

TEST_CASE("a plan beyond the capacity states what it needs", "[plan-files]") {
  const StudyWithFiles here;
  const Study study = here.file().load({"mesh.capacity=5Ki"});
  const StudyPoint& point = study.points.at(0);
  const Batch batch = point.batches->step(0);
  CHECK_NOTHROW((void)point.planners.at(0)->plan(batch, 0));
  const Plan plan = point.planners.at(1)->plan(batch, 0);
  CHECK(plan.capacity > 5 * 1024);
  CHECK(plan.capacity == tokens_held(plan));
}

TEST_CASE("wrong entries of plan files are told with their place", "[plan-files]") {
  const auto problems_of = [](const std::string& entry) { return StudyWithFiles(entry).file().problems(); };
  CHECK_THAT(problems_of("{file: nothing.json}").at(0),
             Catch::StartsWith("13:12: there is no file ") && Catch::EndsWith("nothing.json"));
  CHECK_THAT(problems_of("{file: plans/*.yaml}").at(0), Catch::StartsWith("13:12: there is no file "));
  CHECK(problems_of("{file: []}").at(0) == "13:12: the list of plans is empty");
  CHECK(problems_of("{file: {a: b}}").at(0) == "13:12: 'file' is a path or a list of paths, found a map");
  CHECK(problems_of("{file: plans/*.json, nmae: mine}") == Problems{"13:26: an entry of plan files has no key 'nmae'"});
  CHECK(problems_of("{file: plans/*.json, name: verl}") ==
        Problems{"13:5: these plans have the name of a policy, 'verl'"});
  CHECK(problems_of("{file: plans/*.json}\n  - {file: plans/*.json}") ==
        Problems{"14:5: the plan 'plans' is stated a second time here"});
}

TEST_CASE("nobody looks for another mesh for plans of files", "[plan-files]") {
  const StudyWithFiles here;
  CHECK(here.problems({"compare_to={plans: tuned}"}) ==
        Problems{"--set:1: the plans of 'plans' are made for the study's mesh"});
}

}  // namespace
}  // namespace hdpsim
