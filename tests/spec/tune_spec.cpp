#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/spec/command.h"
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
  CHECK(files_in(here.folder() / "whole") == std::vector<std::string>{"best.yaml", "candidates.csv", "search.jsonl",
                                                                      "study.yaml", "tune.html", "tune.json"});
  check_same_search(here, "whole", "three");
  CHECK((three.out == here.read("whole/tune.json")));
}

TEST_CASE("a tuning that is killed at any moment goes on to the same bytes", "[tune]") {
  const Workplace here;
  const std::string longer = "tune configs/studies/tune.yaml --set data.steps=4";
  REQUIRE(here.hdpsim(longer + " --out whole").code == 0);
  run_through_kills(here, longer + " --out parts", "parts/search.jsonl.part",
                    {.times = 4, .seed = 20260310, .within = 300ms});
  check_same_search(here, "whole", "parts");
}

TEST_CASE("a line of a tuning's journal that is damaged is named and simulated again, all others are used", "[tune]") {
  const Tuned here;
  const std::string journal = here.read("whole/search.jsonl");
  std::string damaged = journal;
  const std::string results = "\"results\":[[";
  const auto at = damaged.find(results, journal.size() / 2);
  REQUIRE(at != std::string::npos);
  damaged.insert(at + results.size(), 1, '9');
  const std::int64_t line = line_count(journal.substr(0, at)) + 1;
  fs::create_directories(here.folder() / "cut");
  here.write("cut/search.jsonl", damaged);
  const Outcome resumed = here.hdpsim(fmt::format("{} --out cut --resume", short_tuning));
  REQUIRE(resumed.code == 0);
  const std::string named = fmt::format("cut/search.jsonl:{}:1: this line is damaged; it is simulated again\n", line);
  CHECK_THAT(resumed.err, Catch::StartsWith(named));
  check_same_search(here, "whole", "cut");
  // A journal of a version without checksums.
  here.write("cut/search.jsonl", "{\"schema\":\"hdpsim.search/1\",\"identity\":\"\"}\n");
  const Outcome old = here.hdpsim(fmt::format("{} --out cut --resume", short_tuning));
  CHECK(old.code == 0);
  CHECK_THAT(old.err, Catch::Contains("cut/search.jsonl:1:1: this line is damaged, or is of a version without"));
  check_same_search(here, "whole", "cut");
}

TEST_CASE("a tuning goes on only with what belongs to it", "[tune]") {
  const Workplace here;
  const auto said = [&](const std::string& arguments) {
    const Outcome outcome = here.hdpsim(fmt::format("{} {}", short_tuning, arguments));
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(said("--resume"), Catch::Contains("--resume needs the folder of --out"));
  CHECK_THAT(said("--out new --resume"), Catch::Contains("new holds no tuning to go on with"));
  const std::string cluster = test::text_of(here.folder() / "configs/clusters/a100-rail-3tier.yaml");
  for (const char* name : {"one.yaml", "two.yaml"}) here.write(name, cluster);
  const std::string space =
      "--set 'cluster={file: one.yaml, gpus: 32}' --set 'tune.space={cluster.file: [one.yaml, two.yaml], mesh.pp: [1]}'"
      " --out here";
  REQUIRE(here.hdpsim(fmt::format("{} {}", short_tuning, space)).code == 0);
  const std::string kept = here.read("here/search.jsonl");
  CHECK_THAT(said(fmt::format("{} --resume --set tune.keep=3", space)),
             Catch::Contains("here holds the tuning of another study"));
  // A file that one value of the space names has changed.
  std::string slower = cluster;
  const auto rate = slower.find("300 GB/s");
  REQUIRE(rate != std::string::npos);
  here.write("two.yaml", slower.replace(rate, 1, 1, '2'));
  CHECK_THAT(said(fmt::format("{} --resume", space)), Catch::Contains("here holds the tuning of another study"));
  CHECK((here.read("here/search.jsonl") == kept));
}

TEST_CASE("the winner is a study that runs, and takes as long as the tuning says", "[tune]") {
  const Tuned here;
  REQUIRE(here.hdpsim("check whole/best.yaml").code == 0);
  REQUIRE(here.hdpsim("study whole/best.yaml --out best").code == 0);
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
    const Outcome outcome = here.hdpsim("tune configs/studies/" + arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK_THAT(said("tiny.yaml"), Catch::Contains("a study with a sweep cannot be tuned"));
  CHECK_THAT(said("tune.yaml --set tune.price=2"), Catch::Contains("write price: 2.10 USD/GPU-hour"));
  CHECK_THAT(said("tune.yaml --set 'tune.space={mesh.tp: [1], mesh.pp: [1], mesh.capacity: [128Ki], "
                  "mesh.recompute: [none], plans: [static]}'"),
             Catch::Contains("candidates can run") && Catch::Contains("on a device"));
  const std::string both = said("tune.yaml --set tune.keep=0 --set mesh.tp=3");
  CHECK_THAT(both, Catch::Contains("'keep' is 0") && Catch::Contains("'tp' is 3"));  // all at once
}

}  // namespace
}  // namespace hdpsim::spec
