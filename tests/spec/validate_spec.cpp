#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/small_validation_set.h"

namespace hdpsim::spec {
namespace {

using test::small_validation_set;

TEST_CASE("validate lays predictions beside what was published, the same whatever the number of jobs", "[validate]") {
  const Workplace here;
  here.write("small.yaml", small_validation_set);
  const Outcome one = here.run("validate ./small.yaml --jobs 1 --format json --out results");
  CHECK(one.out == here.hdpsim("validate ./small.yaml --jobs 3 --format json").out);
  CHECK(files_in(here.folder() / "results") == std::vector<std::string>{"journal.jsonl", "sets.csv", "trust.csv",
                                                                        "trust.yaml", "validation.csv",
                                                                        "validation.html", "validation.json"});
  CHECK(here.read("results/validation.json") == one.out);
  const auto json = nlohmann::json::parse(one.out);
  CHECK(json.at("schema") == "hdpsim.validation/1");
  const std::vector<std::string> units = {"s", "s", "tokens/s"};
  REQUIRE(json.at("rows").size() == units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto& row = json.at("rows").at(i);
    CHECK(row.at("set") == "small");
    CHECK(row.at("predicted") > 0);
    CHECK(row.at("unit") == units[i]);
  }
  // Two plans of one job have one pair, which is in the published order or not.
  const double tau = json.at("sets").at(0).at("kendall_tau");
  CHECK((tau == 1 || tau == -1));
}

TEST_CASE("each case of a set is written as a study, which gives what was predicted", "[validate]") {
  const Workplace here;
  here.write("small.yaml", small_validation_set);
  const auto json = nlohmann::json::parse(here.hdpsim("validate ./small.yaml --format json --out results").out);
  CHECK(files_in(here.folder() / "results/cases") ==
        std::vector<std::string>{"small-1-tp_1_dp_8_micro_batch_2.yaml", "small-2-tp_2_dp_4_micro_batch_1.yaml"});
  const auto run =
      nlohmann::json::parse(here.run("study results/cases/small-2-tp_2_dp_4_micro_batch_1.yaml --format json").out)
          .at("runs")
          .at(0);
  CHECK(run.at("step_time_s").at("mean") == json.at("rows").at(1).at("predicted"));
}

TEST_CASE("validate refuses sets that are not there and tells what is wrong with one", "[validate]") {
  const Workplace here;
  CHECK_THAT(here.refusal("validate sc22"), Catch::Contains("did you mean 'sc21'?"));
  CHECK_THAT(here.refusal("validate korthikanti --without magic"),
             Catch::Contains("--without:1:1: error: there is no mechanism 'magic'"));
  here.write("wrong.yaml", "name: wrong\nrows: []\n");
  const Outcome wrong = here.hdpsim("validate ./wrong.yaml --out results");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("wrong.yaml:1:1: error: a validation set needs 'about'") != std::string::npos);
  CHECK(wrong.err.find("wrong.yaml:1:1: error: a validation set needs 'study'") != std::string::npos);
  CHECK_FALSE(fs::exists(here.folder() / "results"));
}

}  // namespace
}  // namespace hdpsim::spec
