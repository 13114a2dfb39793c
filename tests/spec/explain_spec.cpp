#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/spec/command.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

// The passes of the path and the end of the step are the step.
void check_path(const nlohmann::json& plan) {
  double path = plan.at("critical_path").at("ending_s");
  for (const auto& [activity, time] : plan.at("critical_path").at("breakdown_s").items()) path += time.get<double>();
  CHECK(path == Approx(plan.at("step_time_s").get<double>()));
}

TEST_CASE("a finished study explains itself, plan by plan", "[explain]") {
  const Workplace here;
  REQUIRE(here.hdpsim("study configs/studies/tiny.yaml --out tiny").code == 0);
  const std::string before = here.read("tiny/result.json");
  const Outcome all = here.hdpsim("explain tiny");
  CAPTURE(all.err);
  REQUIRE(all.code == 0);
  for (const char* word :
       {"static, step ", "hdp-balance, step ", "What decides: ", "What would help", "hdp-balance against static: "}) {
    CAPTURE(word);
    CHECK(all.out.find(word) != std::string::npos);
  }
  CHECK(all.err.find("point 0 of 2") != std::string::npos);
  CHECK(here.hdpsim("explain tiny").out == all.out);
  CHECK(here.read("tiny/result.json") == before);
}

TEST_CASE("one run of a study is explained by its point and plan, also as JSON", "[explain]") {
  const Workplace here;
  REQUIRE(here.hdpsim("study configs/studies/tiny.yaml --out tiny").code == 0);
  const Outcome one = here.hdpsim("explain tiny 1/hdp-naive --step 0 --format json");
  REQUIRE(one.code == 0);
  const auto json = nlohmann::json::parse(one.out);
  CHECK(json.at("schema") == "hdpsim.explanation/1");
  REQUIRE(json.at("plans").size() == 1);
  const auto& plan = json.at("plans").at(0);
  CHECK(plan.at("plan") == "hdp-naive");
  CHECK(plan.at("step") == 0);
  check_path(plan);
  CHECK(here.hdpsim("explain tiny hdp-balance").code == 0);
}

TEST_CASE("paths of pipelines, of waves of experts and of every instruction last as long as their steps", "[explain]") {
  const Workplace here;
  for (const char* study :
       {"tiny.yaml --set data.context=32Ki --set mesh.pp=4", "moe.yaml --set mesh.tp=4 --set data.tokens_per_step=4Mi",
        "tiny.yaml --set data.context=32Ki --set grain=exact"}) {
    CAPTURE(study);
    const Outcome ran =
        here.hdpsim(fmt::format("study configs/studies/{} --set sweep={{}} --set data.steps=1 --out out", study));
    CAPTURE(ran.err);
    REQUIRE(ran.code == 0);
    const Outcome told = here.hdpsim("explain out --format json");
    REQUIRE(told.code == 0);
    for (const auto& plan : nlohmann::json::parse(told.out).at("plans")) check_path(plan);
  }
}

TEST_CASE("what is not there cannot be explained", "[explain]") {
  const Workplace here;
  REQUIRE(here.hdpsim("study configs/studies/tiny.yaml --set data.steps=1 --out tiny").code == 0);
  for (const char* wrong : {"explain tiny 7", "explain tiny hdp-balanced", "explain tiny 0/dynamic", "explain nowhere",
                            "explain tiny --step 1", "explain configs"}) {
    CAPTURE(wrong);
    const Outcome outcome = here.hdpsim(wrong);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
  }
}

}  // namespace
}  // namespace hdpsim::spec
