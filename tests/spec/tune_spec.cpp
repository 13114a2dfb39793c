#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/spec/command.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

constexpr char short_tuning[] = "tune configs/studies/tune.yaml --set data.steps=2";

TEST_CASE("a tuning writes the same bytes whatever the number of jobs", "[tune]") {
  const Workplace here;
  REQUIRE(here.hdpsim(fmt::format("{} --jobs 1 --out one", short_tuning)).code == 0);
  const Outcome three = here.hdpsim(fmt::format("{} --jobs 3 --out three --format json", short_tuning));
  REQUIRE(three.code == 0);
  CHECK(files_in(here.folder() / "one") ==
        std::vector<std::string>{"best.yaml", "candidates.csv", "study.yaml", "tune.json"});
  for (const std::string& name : files_in(here.folder() / "one")) {
    CAPTURE(name);
    CHECK((here.read("one/" + name) == here.read("three/" + name)));
  }
  CHECK((three.out == here.read("one/tune.json")));
}

TEST_CASE("the winner is a study that runs, and takes as long as the tuning says", "[tune]") {
  const Workplace here;
  REQUIRE(here.hdpsim(fmt::format("{} --out tuned", short_tuning)).code == 0);
  REQUIRE(here.hdpsim("check tuned/best.yaml").code == 0);
  REQUIRE(here.hdpsim("study tuned/best.yaml --out best").code == 0);
  const auto best = nlohmann::json::parse(here.read("tuned/tune.json")).at("candidates").at(0);
  const auto runs = nlohmann::json::parse(here.read("best/result.json")).at("runs");
  REQUIRE(runs.size() == 1);
  CHECK(runs.at(0).at("step_time_s").at("mean").get<double>() ==
        Approx(best.at("step_time_s").get<double>()).epsilon(1e-9));
  CHECK(runs.at(0).at("mfu").get<double>() == Approx(best.at("mfu").get<double>()).epsilon(1e-9));
}

TEST_CASE("candidates.csv has a row for every candidate and the table names the best and the front", "[tune]") {
  const Workplace here;
  const Outcome outcome = here.hdpsim(fmt::format("{} --out tuned", short_tuning));
  REQUIRE(outcome.code == 0);
  const auto tuning = nlohmann::json::parse(here.read("tuned/tune.json"));
  const std::string rows = here.read("tuned/candidates.csv");
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 1 + std::ssize(tuning.at("candidates")));
  CHECK_THAT(outcome.out, Catch::Contains("USD/Gtoken") && Catch::Contains("candidates cannot run:") &&
                              Catch::Contains(tuning.at("candidates").at(0).at("choices").get<std::string>()));
  for (const auto& candidate : tuning.at("candidates")) {
    if (candidate.at("fate") == "infeasible") {
      CHECK_FALSE(candidate.at("reason").get<std::string>().empty());
    } else {
      CHECK(candidate.at("cost_per_gigatoken").get<double>() ==
            Approx(2 * candidate.at("gpu_hours_per_gigatoken").get<double>()));
    }
  }
}

TEST_CASE("a tuning's mistakes are wrong input", "[tune]") {
  const Workplace here;
  const auto said = [&](const std::string& arguments) {
    const Outcome outcome = here.hdpsim("tune configs/studies/" + arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK_THAT(said("tiny.yaml"), Catch::Contains("a study with a sweep cannot be tuned"));
  CHECK_THAT(said("tune.yaml --set tune.price=2"), Catch::Contains("write price: 2.10 USD/GPU-hour"));
  CHECK_THAT(said("tune.yaml --set 'tune.space={mesh.tp: [1], mesh.pp: [1], mesh.capacity: [128Ki]}'"),
             Catch::Contains("candidates can run") && Catch::Contains("on a device"));
  const std::string both = said("tune.yaml --set tune.keep=0 --set mesh.tp=3");
  CHECK_THAT(both, Catch::Contains("'keep' is 0") && Catch::Contains("'tp' is 3"));  // all at once
}

}  // namespace
}  // namespace hdpsim::spec
