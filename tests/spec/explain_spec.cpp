#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

// The passes of the path and the end of the step are the step.
void check_path(const nlohmann::json& plan) {
  double path = plan.at("critical_path").at("ending_s");
  for (const auto& [activity, time] : plan.at("critical_path").at("breakdown_s").items()) path += time.get<double>();
  CHECK(path == Approx(plan.at("step_time_s").get<double>()));
}

// The bound and what lies between are the step.
void check_distance(const nlohmann::json& plan) {
  const nlohmann::json& distance = plan.at("distance_to_bound");
  double sum = distance.at("bound_s");
  for (const char* part : {"added_work_s", "uneven_s", "waiting_s", "unknown_to_plan_s"}) {
    sum += distance.at(part).get<double>();
  }
  CHECK(sum == Approx(plan.at("step_time_s").get<double>()));
}

TEST_CASE("a finished study explains itself, plan by plan", "[explain]") {
  const Workplace here;
  here.run("study configs/studies/tiny.yaml --set data.steps=2 --set data.tokens_per_step=512Ki --out tiny");
  const std::string before = here.read("tiny/result.json");
  const Outcome all = here.run("explain tiny");
  for (const char* word :
       {"static, step ", "hdp-balance, step ", "What decides: ", "No plan of this batch takes less than ",
        "What would help", "hdp-balance against static: "}) {
    CAPTURE(word);
    CHECK(all.out.find(word) != std::string::npos);
  }
  CHECK(all.err.find("point 0 of 2") != std::string::npos);
  CHECK(here.read("tiny/result.json") == before);
}

TEST_CASE("a plan that does not fit its memory wins nothing, wherever its figures are told", "[explain][study]") {
  const Workplace here;
  // 40 GB are needed: see memory_gb of result.json.
  const std::string study =
      "configs/studies/tiny.yaml --set 'cluster={preset: a100-rail-3tier, gpus: 32, node: {gpu_memory: "
      "30 GB}}' --set data.steps=2 --set data.tokens_per_step=256Ki";
  const Outcome table = here.hdpsim("study " + study + " --out small");
  CAPTURE(table.err, table.out);
  REQUIRE(table.code == 0);
  for (const char* plan : {"static", "hdp-naive", "hdp-balance"}) {
    const std::string line = fmt::format("\n{} does not fit at 2 of 2 points: up to ", plan);
    const std::size_t at = table.out.find(line);
    REQUIRE(at != std::string::npos);
    CHECK(table.out.find(line, at + 1) == std::string::npos);
  }
  CHECK_THAT(table.out, !Catch::Contains("1.00x"));
  CHECK_THAT(table.out, Catch::Contains("; it fits with ") && Catch::Contains("mesh.zero=3"));
  CHECK_THAT(table.out, Catch::Contains("speed-ups are over static, which does not fit"));
  CHECK_THAT(here.hdpsim("explain small").out,
             Catch::Contains("  It does not fit: ") && Catch::Contains("  How sure: with 90% a step of "));
  const Outcome json = here.hdpsim("explain small 0/static --format json");
  CHECK(nlohmann::json::parse(json.out)["plans"][0]["fits"] == false);
  CHECK_THAT(here.hdpsim("replay " + study + " --set sweep={}").out,
             Catch::Contains("does not fit in 2 of 2 steps") && Catch::Contains("No plan fits"));
}

TEST_CASE("one run of a study is explained by its point and plan, also as JSON", "[explain]") {
  const Workplace here;
  here.run("study configs/studies/tiny.yaml --set data.steps=1 --set compare_to=null --out tiny");
  const auto json = nlohmann::json::parse(here.run("explain tiny 1/hdp-naive --step 0 --format json").out);
  CHECK(json.at("schema") == "hdpsim.explanation/1");
  REQUIRE(json.at("plans").size() == 1);
  const auto& plan = json.at("plans").at(0);
  CHECK(plan.at("plan") == "hdp-naive");
  CHECK(plan.at("step") == 0);
  check_path(plan);
  check_distance(plan);
  here.run("explain tiny hdp-balance");
}

TEST_CASE("paths of pipelines, of waves of experts and of every instruction last as long as their steps", "[explain]") {
  const Workplace here;
  for (const char* study :
       {"tiny.yaml --set data.context=32Ki --set data.tokens_per_step=256Ki --set mesh.pp=4 "
        "--set 'plans=[{hdp-balance: {search: none}}]'",
        "moe.yaml --set cluster.gpus=64 --set mesh.tp=4 --set data.context=64Ki --set data.tokens_per_step=512Ki "
        "--set 'plans=[{hdp-balance: {search: none}}]'",
        "tiny.yaml --set data.context=32Ki --set data.tokens_per_step=256Ki --set grain=exact"}) {
    CAPTURE(study);
    here.run(fmt::format("study configs/studies/{} --set sweep={{}} --set data.steps=1 --set compare_to=null --out out",
                         study));
    const auto explained = nlohmann::json::parse(here.run("explain out --format json").out);
    for (const auto& plan : explained.at("plans")) {
      check_path(plan);
      check_distance(plan);
    }
  }
}

TEST_CASE("what is not there cannot be explained", "[explain]") {
  const Workplace here;
  here.run("study configs/studies/tiny.yaml --set data.steps=1 --set compare_to=null --out tiny");
  for (const char* wrong : {"explain tiny 7", "explain tiny hdp-balanced", "explain tiny 0/dynamic", "explain nowhere",
                            "explain tiny --step 1", "explain configs"}) {
    (void)here.refusal(wrong);
  }
}

}  // namespace
}  // namespace hdpsim::spec
