#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using namespace std::chrono_literals;

constexpr char short_tuning[] = "tune configs/studies/tune.yaml --set data.steps=2";

/// A workplace with the results of a short tuning by one job in `whole` and the table that it printed in table.txt,
/// made once for all tests.
struct Tuned : Workplace {
  Tuned() {
    static const std::unique_ptr<Workplace> made = [] {
      auto first = std::make_unique<Workplace>();
      REQUIRE(first->hdpsim(fmt::format("{} --jobs 1 --out whole >table.txt", short_tuning)).code == 0);
      return first;
    }();
    for (const char* name : {"whole", "table.txt"}) {
      fs::copy(made->folder() / name, folder() / name, fs::copy_options::recursive);
    }
  }
};

void check_same_search(const Workplace& here, const std::string& one, const std::string& other) {
  CHECK(files_in(here.folder() / one) == files_in(here.folder() / other));
  for (const std::string& name : files_in(here.folder() / one))
    check_same_file(here, fmt::format("{}/{}", one, name), fmt::format("{}/{}", other, name));
}

TEST_CASE("a tuning writes the same bytes whatever the number of jobs", "[tune]") {
  const Tuned here;
  const Outcome three = here.hdpsim(fmt::format("{} --jobs 3 --out three --format json", short_tuning));
  REQUIRE(three.code == 0);
  CHECK(files_in(here.folder() / "whole") == std::vector<std::string>{"best.yaml", "candidates.csv", "journal.jsonl",
                                                                      "study.yaml", "tune.html", "tune.json"});
  check_same_search(here, "whole", "three");
  CHECK((three.out == here.read("whole/tune.json")));
}

TEST_CASE("a tuning goes on only with what belongs to it", "[tune]") {
  const Workplace here;
  const auto said = [&](const std::string& arguments) {
    const std::string outcome = here.refusal(fmt::format("{} {}", short_tuning, arguments));
    return outcome;
  };
  CHECK_THAT(said("--resume"), Catch::Contains("--resume needs the folder of --out"));
  CHECK_THAT(said("--out new --resume"),
             Catch::Contains("there is no tuning to go on with: no file new/journal.jsonl"));
  const std::string cluster = test::text_of(here.folder() / "configs/clusters/a100-rail-3tier.yaml");
  for (const char* name : {"one.yaml", "two.yaml"}) here.write(name, cluster);
  const std::string space =
      "--set 'cluster={file: one.yaml, gpus: 32}' --set 'tune.space={cluster.file: [one.yaml, two.yaml], mesh.pp: [1]}'"
      " --out here";
  REQUIRE(here.hdpsim(fmt::format("{} {}", short_tuning, space)).code == 0);
  const std::string kept = here.read("here/journal.jsonl");
  CHECK_THAT(said(fmt::format("{} --resume --set tune.keep=3", space)),
             Catch::Contains("this journal is of another tuning: "));
  // A file that one value of the space names has changed.
  std::string slower = cluster;
  const auto rate = slower.find("300 GB/s");
  REQUIRE(rate != std::string::npos);
  here.write("two.yaml", slower.replace(rate, 1, 1, '2'));
  CHECK_THAT(said(fmt::format("{} --resume", space)), Catch::Contains("this journal is of another tuning: "));
  CHECK((here.read("here/journal.jsonl") == kept));
}

TEST_CASE("the winner is a study that runs, and takes as long as the tuning says", "[tune]") {
  const Tuned here;
  here.run("check whole/best.yaml");
  here.run("study whole/best.yaml --out best");
  const auto best = nlohmann::json::parse(here.read("whole/tune.json")).at("candidates").at(0);
  const auto runs = nlohmann::json::parse(here.read("best/result.json")).at("runs");
  REQUIRE(runs.size() == 1);
  CHECK(runs.at(0).at("step_time_s").at("mean").get<double>() ==
        Approx(best.at("step_time_s").get<double>()).epsilon(1e-9));
  CHECK(runs.at(0).at("mfu").get<double>() == Approx(best.at("mfu").get<double>()).epsilon(1e-9));
}

TEST_CASE("candidates.csv has a row for every candidate and the table names the best and the front", "[tune]") {
  const Tuned here;
  const auto tuning = nlohmann::json::parse(here.read("whole/tune.json"));
  const std::string rows = here.read("whole/candidates.csv");
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 1 + std::ssize(tuning.at("candidates")));
  CHECK_THAT(here.read("table.txt"),
             Catch::Contains("USD/Gtoken") && Catch::Contains("candidates cannot run:") &&
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
    const std::string outcome = here.refusal("tune configs/studies/" + arguments);
    return outcome;
  };
  CHECK_THAT(said("tiny.yaml"), Catch::Contains("a study with a sweep cannot be tuned"));
  CHECK_THAT(said("tune.yaml --set tune.price=2"), Catch::Contains("2.10 USD/GPU-hour"));
  CHECK_THAT(said("tune.yaml --set 'tune.space={mesh.tp: [1], mesh.pp: [1], mesh.capacity: [128Ki], "
                  "training.recompute: [none], plans: [static]}'"),
             Catch::Contains("candidates can run") && Catch::Contains("on a device"));
  const std::string both = said("tune.yaml --set tune.keep=0 --set mesh.tp=3");
  CHECK_THAT(both, Catch::Contains("'keep' is 0") && Catch::Contains("'tp' is 3"));  // all at once
}

}  // namespace
}  // namespace hdpsim::spec
