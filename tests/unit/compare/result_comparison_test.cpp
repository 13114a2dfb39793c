#include "sim/compare/result_comparison.h"

#include <fstream>

#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::Problems;

Json run_of(const std::string& context, const std::string& plan, double attention_s, double linear_s) {
  return {{"point", {{"data.context", context}}},
          {"plan", plan},
          {"step_time_s", {{"mean", attention_s + linear_s}}},
          {"tokens_per_s", 100 / (attention_s + linear_s)},
          {"mfu", 0.5},
          {"memory_gb", {{"device_peak", 40.0}, {"fits", true}}},
          {"breakdown_s", {{"attention", attention_s}, {"linear", linear_s}}}};
}

WrittenResult result_of(const std::string& name, Json runs, Json study = {{"name", "s"}}) {
  return {name,
          {{"schema", "hdpsim.result/1"}, {"hdpsim", "1"}, {"study", std::move(study)}, {"runs", std::move(runs)}}};
}

TEST_CASE("the same plan at the same point stands side by side, and differences are those of the numbers",
          "[results]") {
  const std::vector<WrittenResult> results = {
      result_of("a", {run_of("64Ki", "static", 3, 5), run_of("128Ki", "static", 6, 5)}),
      result_of("b", {run_of("128Ki", "static", 4, 5.5), run_of("64Ki", "static", 3, 5)})};
  const std::vector<ComparedRun> rows = compared_runs(results);
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].run == &results[1].content["runs"][1]);
  CHECK(rows[1].first == rows[0].run);
  const Json later = Json::parse(results_json(results))["runs"][3];
  CHECK(later["point"] == "data.context 128Ki");
  CHECK(later["step_time_s"] == 9.5);
  CHECK(later["step_time_s_change"] == -1.5);
  CHECK(later["attention_s_change"] == -2);
  CHECK(later["linear_s_change"] == 0.5);
  CHECK(later["tokens_per_s_change"] == Approx(100 / 9.5 - 100 / 11.0));
  CHECK(later["overhead_s"].is_null());
  CHECK_THAT(results_table(results), Catch::Contains("-13.64%") &&
                                         Catch::Contains("attention -2.00 s, linear +500 ms") &&
                                         Catch::Contains("the same") && Catch::Contains("no key of the study differs"));
}

TEST_CASE("plans and points that one result alone has are named", "[results]") {
  const std::vector<WrittenResult> results = {
      result_of("a", {run_of("64Ki", "static", 3, 5), run_of("64Ki", "mine", 3, 5)}),
      result_of("b", {run_of("64Ki", "static", 3, 5), run_of("1Ki", "static", 1, 1)})};
  CHECK_THAT(results_table(results), Catch::Contains("only in a: data.context 64Ki, mine\n") &&
                                         Catch::Contains("only in b: data.context 1Ki, static\n"));
  CHECK(Json::parse(results_json(results))["runs"].size() == 4);  // and none that is not there
}

TEST_CASE("a third result is compared with the first, and lacks what it lacks", "[results]") {
  Json refused = {{"point", {{"data.context", "64Ki"}}}, {"plan", "static"}, {"refusal", "too long"}};
  const std::vector<WrittenResult> results = {
      result_of("a", {run_of("64Ki", "static", 3, 5), run_of("1Ki", "x", 1, 1)}), result_of("b", {refused}),
      result_of("c", {run_of("1Ki", "x", 2, 1)})};
  const std::vector<ComparedRun> rows = compared_runs(results);
  REQUIRE(rows.size() == 6);
  CHECK(rows[2].run == nullptr);
  CHECK(rows[5].first == &results[0].content["runs"][1]);
  CHECK_THAT(results_table(results),
             Catch::Contains("refused: too long") && Catch::Contains("has no such run") && Catch::Contains("+50.00%"));
}

TEST_CASE("keys that the studies state otherwise are named with both values", "[results]") {
  const Json runs = {run_of("64Ki", "static", 3, 5)};
  const std::vector<WrittenResult> results = {
      result_of("a", runs, {{"mesh", {{"tp", 2}, {"pp", 1}}}, {"plans", {"static", "mine"}}, {"old", true}}),
      result_of("b", runs, {{"mesh", {{"tp", 4}, {"pp", 1}}}, {"plans", {"static"}}, {"context", 65536}})};
  const std::vector<ChangedKey> changes = changed_keys(results[0], results[1]);
  REQUIRE(changes.size() == 4);
  const auto is = [](const ChangedKey& key, const char* path, const char* first, const char* here) {
    return key.path == path && key.first == first && key.here == here;
  };
  CHECK(is(changes[0], "mesh.tp", "2", "4"));
  CHECK(is(changes[1], "plans", R"(["static","mine"])", R"(["static"])"));
  CHECK(is(changes[2], "old", "true", ""));
  CHECK(is(changes[3], "context", "", "64Ki"));
}

TEST_CASE("what is no result is told of every path at once", "[results]") {
  const test::TemporaryFolder folder;
  const auto wrong = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directory(folder.path() / name);
    std::ofstream(folder.path() / name / "result.json") << text;
    return (folder.path() / name).string();
  };
  const std::vector<std::string> paths = {
      wrong("1", "{"),
      wrong("2", R"({"schema": "hdpsim.result/2"})"),
      wrong("3", R"({"runs": []})"),
      wrong("4", R"({"schema": "hdpsim.result/1", "study": {}, "runs": []})"),
      wrong("5", R"({"schema": "hdpsim.result/1", "study": {}, "runs": [{"point": {}}]})"),
      wrong("6", R"({"schema": "hdpsim.result/1", "study": 1, "runs": [{"point": {}, "plan": "x"}]})"),
      (folder.path() / "7").string() + "/result.json"};
  CHECK(test::problems_of([&] { (void)read_results(paths); }) ==
        Problems{"0:0: this is no JSON", "0:0: this has the schema hdpsim.result/2, and hdpsim.result/1 is read",
                 "0:0: this has no schema, and hdpsim.result/1 is read", "0:0: this result has no runs",
                 "0:0: run 0 has no plan", "0:0: this result has no study", "0:0: there is no such file"});
  CHECK(holds_result(paths[0]));
  CHECK_FALSE(holds_result(paths[6]));
}

}  // namespace
}  // namespace hdpsim
