#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using namespace std::chrono_literals;

// A day of 32 GPUs, in seconds.
constexpr char day[] = R"(name: day
cluster: {preset: a100-rail-3tier, gpus: 32}
model: {preset: llama-7b}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 64Ki, tokens_per_step: 1Mi, steps: 3}
mesh: {tp: 2, capacity: 8Ki}
plans: [static, {hdp-balance: {search: none}}]
compare_to: static
failures: {node_mtbf: 2 d, checkpoint: 30 s, restart: 5 min}
production:
  time: 24 h
  stragglers: {device_mtbf: 4 d, slowdown: {from: 1.2, to: 3}, duration: {from: 1 min, to: 1 h}, answer: replan}
)";
constexpr const char* production_files[] = {"production.json", "production.csv", "production.html", "events.csv",
                                            "study.yaml"};

struct Day : Workplace {
  Day() { write("day.yaml", day); }
};

void check_same_production(const Workplace& here, const std::string& folder, const std::string& other) {
  for (const char* name : production_files) check_same_file(here, folder + "/" + name, other + "/" + name);
}

TEST_CASE("a production run says where its hours went, and they sum to its time", "[production]") {
  const Day here;
  const Outcome printed = here.run("replay day.yaml --out day");
  CHECK(printed.out.find("tokens/GPU-hour") != std::string::npos);
  const auto result = nlohmann::json::parse(here.read("day/production.json"));
  CHECK(result.at("schema") == "hdpsim.production/1");
  REQUIRE(result.at("runs").size() == 2);
  for (const auto& run : result.at("runs")) {
    double hours = 0;
    for (const auto& [name, spent] : run.at("hours_spent").items()) hours += spent.get<double>();
    CHECK(hours == Approx(run.at("hours").get<double>()));
    CHECK(run.at("hours").get<double>() >= 24);
    // A batch has at most 1Mi tokens, and at least as many without the longest sequence.
    const double tokens = run.at("tokens").get<double>() / run.at("steps").get<double>();
    CHECK((tokens <= 1048576 && tokens > 1048576 - 65536));
    CHECK(run.at("events").at("failed").get<int>() > 0);
    CHECK(run.at("events").at("replanned").get<int>() > 0);
  }
}

TEST_CASE("a production run has the same bytes whatever the number of jobs", "[production]") {
  const Day here;
  here.run("replay day.yaml --jobs 1 --out one");
  here.run("replay day.yaml --jobs 3 --out three");
  check_same_production(here, "one", "three");
}

TEST_CASE("a production run that is killed at any moment goes on to the same bytes", "[production]") {
  const Day here;
  here.run("replay day.yaml --ablate --out whole");
  run_through_kills(here, "replay day.yaml --ablate --out parts", "parts/journal.jsonl",
                    {.seed = 20261130, .within = 150ms});
  check_same_production(here, "whole", "parts");
}

TEST_CASE("an ablation has a row for each mechanism that the study has", "[production]") {
  const Day here;
  const Outcome rows = here.run("replay day.yaml --plan static --ablate --format csv");
  const auto has = [&](const std::string& begin) {
    return rows.out.find("\n" + begin + ",static,") != std::string::npos;
  };
  CHECK(has(""));
  CHECK(has("failures"));
  CHECK(has("stragglers"));
  CHECK_FALSE(has("loading"));
  CHECK_FALSE(has("recompute"));
  const Outcome calm = here.run("replay day.yaml --plan static --without failures --without stragglers --format json");
  const auto run = nlohmann::json::parse(calm.out).at("runs").at(0);
  CHECK(run.at("goodput") == 1);
  CHECK(run.at("over_whole") == 1);
}

TEST_CASE("an ablation needs a production run", "[production]") {
  const Workplace here;
  const Outcome refused = here.hdpsim("replay configs/studies/tiny.yaml --point 0 --ablate");
  CHECK(refused.code == 2);
  CHECK(refused.err.find("production") != std::string::npos);
}

}  // namespace
}  // namespace hdpsim::spec
