#include "sim/plan/plan_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

const std::string unsound_text = R"({
  "schema": "hdpsim.plan/1",
  "policy": "by hand",
  "step": 0,
  "ranks": 3,
  "capacity": 100,
  "layers": 10,
  "sequences": [
    100,
    60],
  "micro_batches": [
    {"group": "0-1", "spans": [0]},
    {"group": "2", "spans": []},
    {"group": "2", "spans": [[1, 0, 50]]}],
  "schedule": [
    [0],
    [0, 0],
    [1, 2]]
}
)";

std::string problems_of(const std::string& text) {
  Diagnostics diagnostics;
  const auto plan = read_plan("plan.json", text, diagnostics);
  REQUIRE(plan);
  report_unsound(*plan, "plan.json", text, diagnostics);
  return diagnostics.text();
}

constexpr char unsound_problems[] = R"(plan.json:10:5: error: sequence 1: tokens 50 to 60 are in no micro-batch
   10 |     60],
            ^
plan.json:13:5: error: micro-batch 1 has no spans
   13 |     {"group": "2", "spans": []},
            ^
plan.json:17:5: error: rank 1 runs micro-batch 0 twice
   17 |     [0, 0],
            ^
)";

}  // namespace

TEST_CASE("unsound plan: each problem is told at the sequence, micro-batch or rank that has it",
          "[plan][file][check]") {
  CHECK(problems_of(unsound_text) == unsound_problems);
}

TEST_CASE("unsound plan: the same in YAML", "[plan][file][check]") {
  const std::string as_yaml = "# a comment, which JSON has not\n" + unsound_text;
  const std::string problems = problems_of(as_yaml);
  CHECK_THAT(problems, Catch::Contains("plan.json:11:5: error: sequence 1") &&
                           Catch::Contains("plan.json:14:5: error: ") &&
                           Catch::Contains("plan.json:18:5: error: rank 1"));
}

TEST_CASE("unsound plan: the first twenty problems are told, the others counted", "[plan][file][check]") {
  constexpr std::int64_t ranks = 23;
  Plan plan = plan_of("static", small_pool(ranks), {});
  plan.micro_batches.resize(1);
  plan.micro_batches[0].group = {HdpRank(0)};
  for (auto& list : plan.schedule) list = {MicroBatchId(0)};  // which 22 ranks are not of; and nothing is in it
  const std::string problems = problems_of(plan_text(plan));
  CHECK_THAT(problems, Catch::Contains("and 3 more problems of this plan"));
  CHECK(problems.find("and 3 more") > problems.find("rank 19 "));
}

TEST_CASE("sound plan: a file on disk, an unsound one, and none", "[plan][file][check]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "plan.json").string();
  Diagnostics diagnostics;
  const Plan plan = plan_of("static", small_pool(), {});
  std::ofstream(path) << plan_text(plan);
  const auto loaded = load_sound_plan(path, diagnostics);
  REQUIRE(loaded);
  CHECK(*loaded == plan);
  CHECK(diagnostics.empty());
  std::ofstream(path) << unsound_text;
  CHECK(!load_sound_plan(path, diagnostics));
  CHECK_THAT(diagnostics.text(), Catch::StartsWith(path + ":10:5: error: sequence 1"));
  std::filesystem::remove(path);
  Diagnostics missing;
  CHECK(!load_sound_plan(path, missing));
  CHECK(missing.text() == path + ": error: there is no such file\n");
}

}  // namespace hdpsim
