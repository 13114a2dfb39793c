#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using namespace std::chrono_literals;

constexpr char short_replay[] = "replay configs/studies/tiny.yaml --point 1 --steps 24 --set replay.window=5";
constexpr const char* files[] = {"steps.csv", "windows.csv", "replay.json", "replay.html", "study.yaml"};

void check_same_files(const Workplace& here, const std::string& folder, const std::string& other) {
  for (const char* name : files) check_same_file(here, folder + "/" + name, other + "/" + name);
}

TEST_CASE("a replay has the same bytes whatever the number of jobs, and a row a plan and step", "[replay]") {
  const Workplace here;
  here.run(fmt::format("{} --jobs 1 --out one", short_replay));
  const Outcome three = here.run(fmt::format("{} --jobs 3 --out three --format csv", short_replay));
  check_same_files(here, "one", "three");
  CHECK((three.out == here.read("one/steps.csv")));
  CHECK(line_count(three.out) == 1 + 24 * 3);
  CHECK(line_count(here.read("one/windows.csv")) == 1 + 5 * 3);  // of steps 0-4, 5-9, 10-14, 15-19, 20-23
}

TEST_CASE("the step times of a replay are those of the study", "[replay]") {
  const Workplace here;
  here.run("study configs/studies/tiny.yaml --out study");
  here.run("replay configs/studies/tiny.yaml --point 1 --out replay");
  const auto study = nlohmann::json::parse(here.read("study/result.json")).at("runs");
  const auto replay = nlohmann::json::parse(here.read("replay/replay.json"));
  CHECK(replay.at("steps") == 4);
  for (std::size_t plan = 0; plan < 3; ++plan) {
    const auto& run = study.at(3 + plan);  // the second point
    const auto& replayed = replay.at("plans").at(plan);
    CHECK(replayed.at("plan") == run.at("plan"));
    CHECK(replayed.at("step_time_s").at("mean").get<double>() ==
          Approx(run.at("step_time_s").at("mean").get<double>()).epsilon(1e-9));
    CHECK(replayed.at("speedup").at("mean").get<double>() ==
          Approx(run.at("speedup").at("mean").get<double>()).epsilon(1e-9));
    const auto& over_best = replayed.at("speedup_over_best_static");
    CHECK(over_best.at("sharing") == run.at("speedup_over_best_static").at("sharing"));
    CHECK(over_best.at("mean").get<double>() ==
          Approx(run.at("speedup_over_best_static").at("mean").get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("a replay that is killed at any moment goes on to the same bytes", "[replay]") {
  const Workplace here;
  const std::string longer = "replay configs/studies/tiny.yaml --point 1 --steps 150 --set replay.window=20";
  REQUIRE(here.hdpsim(longer + " --out whole").code == 0);
  run_through_kills(here, longer + " --out parts", "parts/journal.jsonl", {.seed = 20260102, .within = 150ms});
  check_same_files(here, "whole", "parts");
  CHECK_FALSE(fs::exists(here.folder() / "parts/steps.csv.part"));
}

TEST_CASE("a replay may be made longer, and is then that of so many steps from the start", "[replay]") {
  const Workplace here;
  const std::string study = "replay configs/studies/tiny.yaml --point 1 ";
  here.run(study + "--steps 10 --out longer");
  here.run(study + "--steps 16 --resume --out longer");
  here.run(study + "--steps 16 --out whole");
  check_same_files(here, "whole", "longer");
  const Outcome other = here.hdpsim(study + "--steps 16 --set data.seed=2 --resume --out longer");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Catch::Contains("this journal is of another replay: "));
  check_same_files(here, "whole", "longer");
}

// A step of long documents among steps of short ones: 12 steps of 1Mi tokens.
std::string trace_with_a_long_step() {
  std::string text = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (int step = 0; step < 12; ++step) {
    const int documents = step == 7 ? 16 : 512;
    const int tokens = (1 << 20) / documents;
    for (int i = 0; i < documents; ++i) text += fmt::format("2024-05-10,{},{}\n", tokens - 100, 100);
  }
  return text;
}

TEST_CASE("a trace is used once, and its slowest step is named with what makes it slow", "[replay]") {
  const Workplace here;
  here.write("azure.csv", trace_with_a_long_step());
  const Outcome outcome = here.run(
      "replay configs/studies/tiny.yaml --point 1 --trace azure.csv --plan hdp-balance --plan static --out out");
  const auto replay = nlohmann::json::parse(here.read("out/replay.json"));
  CHECK(replay.at("steps") == 12);
  CHECK(replay.at("lengths").at("tokens") == 12 << 20);
  CHECK(replay.at("lengths").at("longest") == (1 << 20) / 16);
  REQUIRE(replay.at("plans").size() == 2);
  const auto& worst = replay.at("plans").at(1).at("worst").at(0);
  CHECK(worst.at("step") == 7);
  CHECK(worst.at("sequences").at(0).at("tokens") == (1 << 20) / 16);
  CHECK(worst.at("sequences").at(0).at("share_of_tokens") == 1.0 / 16);
  CHECK_THAT(outcome.out, Catch::Contains("step 7: "));
  CHECK_THAT(outcome.out, Catch::Contains("(64Ki tokens of document"));
}

TEST_CASE("where a plan loses its lead is told as a stretch of steps", "[replay]") {
  const Workplace here;
  here.write("lengths.csv", trace_with_a_long_step());
  const Outcome outcome = here.run(
      "replay configs/studies/tiny.yaml --point 1 --trace lengths.csv --column ContextTokens+GeneratedTokens "
      "--set replay.window=1 --set replay.threshold=1000 --out out");
  const auto plans = nlohmann::json::parse(here.read("out/replay.json")).at("plans");
  CHECK(plans.at(0).at("lead_lost").at("steps") == 0);  // the baseline
  for (const std::size_t plan : {1, 2}) {
    const auto& lost = plans.at(plan).at("lead_lost");
    CHECK(lost.at("stretches") == 1);  // nobody is a thousand times as fast, ever
    CHECK(lost.at("steps") == 12);
    CHECK(lost.at("lowest").at(0).at("all").at("last_step") == 11);
  }
  CHECK_THAT(outcome.out, Catch::Contains("hdp-balance is less than 1000 times as fast as static, over 1 steps"));
}

TEST_CASE("a replay's mistakes are wrong input", "[replay]") {
  const Workplace here;
  const auto said = [&](const std::string& arguments) {
    const std::string outcome = here.refusal("replay " + arguments);
    return outcome;
  };
  CHECK_THAT(said("configs/studies/tiny.yaml"), Catch::Contains("a replay has one point, the study has 2"));
  CHECK_THAT(said("configs/studies/tiny.yaml --point 1 --resume"),
             Catch::Contains("--resume needs the folder of --out"));
  CHECK_THAT(said("configs/studies/tiny.yaml --point 1 --column a"),
             Catch::Contains("--column needs a file of lengths"));
  CHECK_THAT(said("configs/studies/tiny.yaml --point 1 --trace none.csv"),
             Catch::Contains("there is no file none.csv"));
  CHECK_THAT(said("configs/studies/tiny.yaml --point 1 --plan best"), Catch::Contains("the study has no plan 'best'"));
  CHECK_THAT(said("configs/studies/tiny.yaml --point 1 --set replay.windows=3"),
             Catch::Contains("the replay has no key 'windows'") && Catch::Contains("did you mean 'window'?"));
  CHECK_THAT(said("configs/studies/tiny.yaml --point 1 --out new --resume"),
             Catch::Contains("there is no replay to go on with: no file new/journal.jsonl"));
}

}  // namespace
}  // namespace hdpsim::spec
