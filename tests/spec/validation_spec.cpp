#include <fmt/format.h>

#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

const fs::path source = HDPSIM_SOURCE_DIR;

// scripts/validate_real with two plans on steps of 128 tokens, each run three times.
Outcome validate(const Workplace& here, const std::string& arguments) {
  const std::string command = fmt::format(
      "cd '{}'; '{}/scripts/validate_real' --hdpsim '{}' --steps 1 --repeat 3 --set data.tokens_per_step=128 "
      "--set data.context=128 --set mesh.capacity=64 --set 'plans=[static, hdp-balance]' --out . {} >.stdout "
      "2>.stderr",
      here.folder().string(), source.string(), HDPSIM_BINARY, arguments);
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), here.read(".stdout"), here.read(".stderr")};
}

// What `hdpsim calibrate --check epyc-cpu --format json` says.
void check_drift(const nlohmann::json& check) {
  CHECK(check.at("schema") == "hdpsim.drift/1");
  CHECK(check.at("profile") == "epyc-cpu");
  REQUIRE(check.at("families").size() >= 4);
  CHECK(check.at("families")[0].at("family") == "attention_forward");
  bool drifted = false;
  for (const auto& family : check.at("families")) {
    CHECK(family.at("rounds") >= 1);
    CHECK(family.at("p10") <= family.at("p90"));
    const std::string judgement = family.at("judgement");
    drifted = drifted || judgement == "slower" || judgement == "faster";
  }
  CHECK(drifted == (check.at("verdict") == "drifted"));
}

TEST_CASE("one command trains a case for real and leaves its study, plans, runs and differences", "[validation]") {
  const Workplace here;
  const Outcome outcome = validate(here, "--only web-4 --device box --check-time 1s");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  for (const std::string plan : {"static", "hdp-balance"}) {
    CHECK_THAT(outcome.out, Contains(fmt::format("web-4             {:<26}     4", plan)));
    CHECK(files_in(here.folder() / "box/web-4" / plan) == std::vector<std::string>{"plan-0.json", "steps.csv"});
  }
  CHECK(files_in(here.folder() / "box/web-4") ==
        std::vector<std::string>{"comparison.json", "families.csv", "ranks.csv", "study.yaml"});
  CHECK(files_in(here.folder() / "box") == std::vector<std::string>{"machine.json", "summary.csv"});

  // What became of the profile is recorded, whatever it is: tests do not depend on the machine.
  const nlohmann::json check = nlohmann::json::parse(here.read("box/machine.json")).at("check");
  check_drift(check);
  CHECK_THAT(outcome.err, Contains(fmt::format("the profile epyc-cpu: {}; ", check.at("verdict").get<std::string>())));

  // Another case leaves the rows of those before it as they are, and all are summed up.
  const Outcome other = validate(here, "--only short-2 --device box --check-time 0s");
  REQUIRE(other.code == 0);
  CHECK_THAT(other.out, Contains("error of the kernels while on a core: mean") && Contains("(4 rows)"));
  CHECK_THAT(other.out, Contains("error at the pace of the kernels, shared cores: mean") && Contains("(2 rows)"));
  const std::string rows = here.read("box/summary.csv");
  for (const std::string name : {"short-2", "web-4"}) CHECK_THAT(rows, Contains("\n" + name + ",static,"));
}

TEST_CASE("a case that is refused is listed with the reason", "[validation]") {
  const Workplace here;
  const Outcome outcome = validate(here, "--only short-2 --check-time 0s --set 'plans=[static: {cp: 3}]'");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("short-2           not run: "));
  CHECK_THAT(validate(here, "--only nothing").err, Contains("there is no case nothing; known: long-2"));
}

}  // namespace
}  // namespace hdpsim::spec
