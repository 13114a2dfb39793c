#include "sim/replay/replay_choice.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_report.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using Strings = std::vector<std::string>;

const std::function<bool()> goes_on = [] { return false; };

/// verl fills micro-batches of 8 ranks of 8Ki tokens by work, so that one of short sequences may have more tokens than
/// fit.
test::StudyFile study_of(const std::string& plans) {
  return test::StudyFile(
      test::changed(test::good_study, "plans: [static, hdp-naive]", "compare_to: static\nplans: " + plans));
}

std::int64_t first_beyond_capacity(const StudyPoint& point, std::size_t plan) {
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    if (tokens_held(point.planners.at(plan)->plan(point.batches->step(step), step)) > point.spec.capacity) return step;
  }
  return -1;
}

}  // namespace

TEST_CASE("a replay goes without a plan that leaves more on a rank than it holds in one of its steps",
          "[replay][refusal]") {
  const test::StudyFile file = study_of("[static, verl, hdp-naive]");
  Study study = file.load({"data.steps=12"});
  const StudyPoint& point = choose(study, {});
  const std::int64_t first = first_beyond_capacity(point, 1);
  REQUIRE(first > 0);
  const auto refused = leave_out_refused(study, point, 2, goes_on);
  REQUIRE(refused);
  REQUIRE(refused->size() == 1);
  CHECK(refused->at(0).plan == "verl");
  CHECK(refused->at(0).refusal.step == first);
  CHECK_THAT(refusal_text(refused->at(0)),
             Catch::StartsWith("verl is refused: ") && Catch::Contains("study.yaml:12:17: verl leaves "));
  CHECK(plan_names(study) == Strings{"static", "hdp-naive"});

  const auto result = replay(study, point, {.steps = point.spec.steps, .refused = *refused});
  REQUIRE(result);
  CHECK(result->plans == Strings{"static", "hdp-naive"});
  CHECK_THAT(replay_table(*result), Catch::Contains("verl is refused: "));
  CHECK_THAT(replay_json(*result, study.resolved, "1"),
             Catch::Contains("\"refused\": [") && Catch::Contains("\"verl\""));
}

TEST_CASE("a replay goes without a plan that refuses a batch", "[replay][refusal]") {
  Study study = study_of("[static, megatron-dp-balanced: {micro_batches_divided_by: 65536}]").load({"data.steps=1"});
  const StudyPoint& point = choose(study, {});
  const auto refused = leave_out_refused(study, point, 1, goes_on);
  REQUIRE(refused->size() == 1);
  CHECK_THAT(refusal_text(refused->at(0)), Catch::Contains("megatron-dp-balanced makes "));
}

TEST_CASE("plans that are not refused all stay", "[replay][refusal]") {
  Study study = study_of("[static, verl, hdp-naive]").load({"data.steps=1"});
  const StudyPoint& point = choose(study, {});
  REQUIRE(first_beyond_capacity(point, 1) == -1);
  CHECK(leave_out_refused(study, point, 1, goes_on)->empty());
  CHECK(study.plans.size() == 3);
}

TEST_CASE("nothing is compared with a baseline that is refused", "[replay][refusal]") {
  Study study = study_of("[static, verl, hdp-naive]").load({"data.steps=12", "compare_to=verl"});
  const StudyPoint& point = choose(study, {});
  REQUIRE(leave_out_refused(study, point, 1, goes_on)->size() == 1);
  CHECK_FALSE(study.compare_to);
  CHECK(study.resolved.find("compare_to") == nullptr);
}

TEST_CASE("a replay of which every plan is refused is wrong input", "[replay][refusal]") {
  Study study = study_of("[verl, static]").load({"data.steps=12"});
  ReplayChoice verl;
  verl.plans = {"verl"};
  const StudyPoint& point = choose(study, verl);
  const Strings problems = test::problems_of([&] { (void)leave_out_refused(study, point, 1, goes_on); });
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::StartsWith("12:9: ") && Catch::Contains("verl leaves "));
}

TEST_CASE("who stops a replay need not wait for its plans", "[replay][refusal]") {
  Study study = study_of("[static, verl]").load({"data.steps=12"});
  const StudyPoint& point = choose(study, {});
  CHECK_FALSE(leave_out_refused(study, point, 1, [] { return true; }));
}

}  // namespace hdpsim
