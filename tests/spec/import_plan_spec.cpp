// A scheduler of one's own beside the policies: its plans are files, which `hdpsim import-plan` writes.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Json = nlohmann::ordered_json;

constexpr char study_text[] = R"(name: outside
cluster: {preset: a100-rail-3tier, gpus: 16}
model: {preset: llama-7b}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 32Ki, tokens_per_step: 256Ki, steps: 3}
mesh: {tp: 2}
compare_to: static
plans:
  - static
  - hdp-naive
)";

bool has_line(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A workplace with a study of two policies, and beside it one that also has plans of files, which are not there yet.
class Outside {
 public:
  explicit Outside(const std::string& entry = "{file: plans/*.json, name: mine}") {
    here.write("policies.yaml", study_text);
    here.write("study.yaml", fmt::format("{}  - {}\n", study_text, entry));
  }

  // The plan of hdp-naive for a step, as JSON.
  [[nodiscard]] Json plan(int step) const {
    return Json::parse(here.run(fmt::format("plan policies.yaml --plan hdp-naive --step {}", step)).out);
  }

  /// What a scheduler would print of the plans of hdp-naive: a line for each step, its groups by their size in the
  /// order of execution.
  [[nodiscard]] std::string lines() const {
    std::string text;
    for (int step = 0; step < 3; ++step) {
      const Json made = plan(step);
      Json groups = Json::array();
      for (const Json& micro_batch : made.at("micro_batches")) {
        const std::string ranks = micro_batch.at("group");
        const std::size_t dash = ranks.find('-');
        const int first = std::stoi(ranks);
        const int last = dash == std::string::npos ? first : std::stoi(ranks.substr(dash + 1));
        groups.push_back({first, last - first + 1, micro_batch.at("spans")});
      }
      text += Json{{"loss", 2.5}, {"micro_batches", groups}}.dump() + "\n";
    }
    return text;
  }

  /// The runs of a finished study by the names of their plans.
  [[nodiscard]] Json run_of(const std::string& plan) const {
    const Json result = Json::parse(here.read("out/result.json"));
    for (const Json& run : result.at("runs")) {
      if (run.at("plan") == plan) return run;
    }
    FAIL("no run of " << plan);
    return {};
  }

  Workplace here;
};

// Everything but the name.
Json figures(Json run) {
  run.erase("plan");
  return run;
}

TEST_CASE("what a scheduler prints is simulated beside the policies, and equal plans take equally long",
          "[import-plan]") {
  const Outside outside;
  const Workplace& here = outside.here;
  here.write("mine.jsonl", outside.lines());
  const Outcome made = here.run("import-plan mine.jsonl --out 'plans/{step}.json' --study study.yaml");
  CHECK(made.out.empty());
  CHECK(has_line(made.err, "'loss' says nothing about a plan"));
  CHECK(has_line(made.err, "wrote 3 plans; in a study: plans: [{file: plans/*.json}]"));
  CHECK(has_line(here.run("check plans/2.json").out, "a plan of 'mine'"));
  CHECK(has_line(here.run("check study.yaml").out, "1 points and 3 runs"));
  CHECK(has_line(here.run("study study.yaml --out out").out, "mine"));
  CHECK(figures(outside.run_of("mine")) == figures(outside.run_of("hdp-naive")));
  CHECK(has_line(here.read("out/report.html"), "\"mine\""));
}

TEST_CASE("plans that hdpsim plan wrote go into a study as they are", "[import-plan]") {
  const Outside outside("{file: [2.json, 1.json, 0.json], name: mine}");
  const Workplace& here = outside.here;
  for (int step = 0; step < 3; ++step) here.write(fmt::format("{}.json", step), outside.plan(step).dump());
  here.run("study study.yaml --out out --without offload");
  CHECK(figures(outside.run_of("mine")) == figures(outside.run_of("hdp-naive")));
  here.run("explain out mine");
  here.run("replay study.yaml --plan mine --plan static --out replayed");
  CHECK(has_line(here.read("replayed/steps.csv"), "mine"));
}

TEST_CASE("a study goes on with the runs of its plan files until one of them is another", "[import-plan]") {
  const Outside outside;
  const Workplace& here = outside.here;
  here.write("mine.jsonl", outside.lines());
  here.run("import-plan mine.jsonl --out 'plans/{step}.json' --study study.yaml");
  here.run("study study.yaml --out out");
  const std::string before = here.read("out/runs.csv");
  const auto kept = line_count(here.read("out/journal.jsonl"));
  here.run("study study.yaml --out out --resume");
  CHECK(here.read("out/runs.csv") == before);
  // All sequences of a step in groups of all ranks: slower, and another run beside the three that are kept.
  Json plan = Json::parse(here.read("plans/1.json"));
  for (Json& micro_batch : plan["micro_batches"]) micro_batch["group"] = "0-7";
  Json every = Json::array();
  for (std::size_t id = 0; id < plan["micro_batches"].size(); ++id) every.push_back(id);
  plan["schedule"] = Json::array();
  for (int rank = 0; rank < 8; ++rank) plan["schedule"].push_back(every);
  here.write("plans/1.json", plan.dump());
  here.run("study study.yaml --out out --resume");
  CHECK(here.read("out/runs.csv") != before);
  CHECK(line_count(here.read("out/journal.jsonl")) == kept + 1);
}

TEST_CASE("a plan beyond the capacity does not fit in a study, and a replay goes on without it", "[import-plan]") {
  const Outside outside;
  const Workplace& here = outside.here;
  here.write("mine.jsonl", outside.lines());
  here.run("import-plan mine.jsonl --out 'plans/{step}.json' --study study.yaml");
  CHECK(has_line(here.run("study study.yaml --out out --set mesh.capacity=6Ki").out,
                 "of 6Ki tokens on a rank; it fits with mesh.capacity="));
  CHECK(outside.run_of("mine").at("memory_gb").at("fits") == false);
  CHECK(outside.run_of("mine").at("memory_gb").at("tokens_held") > 6 * 1024);
  CHECK(outside.run_of("hdp-naive").at("step_time_s").at("mean").get<double>() > 0);
  const Outcome replay = here.run("replay study.yaml --out replayed --set mesh.capacity=6Ki");
  CHECK(has_line(replay.out, "mine is refused: study.yaml:11:5: mine leaves "));
  const Json replayed = Json::parse(here.read("replayed/replay.json"));
  CHECK(replayed.at("plans").size() == 2);
  CHECK(replayed.at("refused").at(0).at("plan") == "mine");
}

TEST_CASE("a plan that needs more memory than a device has is simulated and does not fit", "[import-plan]") {
  const Outside outside;
  const Workplace& here = outside.here;
  std::string all_on_one_rank;
  for (int step = 0; step < 3; ++step) {
    const std::size_t count = outside.plan(step).at("sequences").size();
    Json sequences = Json::array();
    for (std::size_t i = 0; i < count; ++i) sequences.push_back(i);
    all_on_one_rank += Json{{"micro_batches", {{1, sequences}}}}.dump() + "\n";
  }
  here.write("mine.jsonl", all_on_one_rank);
  // 256Ki tokens of 7 billion parameters on two devices: activations alone are some hundred GB.
  const std::string room = " --set mesh.capacity=256Ki";
  here.run("import-plan mine.jsonl --out 'plans/{step}.json' --study study.yaml" + room);
  here.run("study study.yaml --out out" + room);
  CHECK(outside.run_of("mine").at("memory_gb").at("fits") == false);
  CHECK(outside.run_of("hdp-naive").contains("step_time_s"));
}

TEST_CASE("plans of other batches, missing steps and other pools end the study before it begins", "[import-plan]") {
  const Outside outside;
  const Workplace& here = outside.here;
  here.write("mine.jsonl", outside.lines());
  here.run("import-plan mine.jsonl --out 'plans/{step}.json' --study study.yaml");
  const std::string tuned = here.refusal("tune study.yaml");
  CHECK(
      has_line(tuned, "study.yaml:11:5: error: plans of files are made for one mesh, and a tuning looks for another"));
  const Outcome batch = here.hdpsim("study study.yaml --out out --set data.seed=2");
  CHECK(batch.code == 2);
  for (const char* file : {"plans/0.json", "plans/1.json", "plans/2.json"}) CHECK(has_line(batch.err, file));
  CHECK(has_line(batch.err, "this is not the batch of step 0 of the study: sequence 0 has "));
  CHECK_FALSE(fs::exists(here.folder() / "out"));
  const Outcome steps = here.hdpsim("check study.yaml", "rm plans/1.json;");
  CHECK(steps.code == 2);
  CHECK(has_line(steps.err, "study.yaml:11:5: error: 2 plans for the study's 3 steps: none for step 1"));
}

TEST_CASE("check knows steps of schedulers by what they state", "[import-plan]") {
  const Workplace here;
  here.write("step.json", R"({"sample_id_groups": [[[0], [0]]]})");
  CHECK(has_line(here.run("check step.json").out, "1 step of a scheduler"));
  CHECK(has_line(here.run("check configs/studies/scheduler.jsonl").out, "1 step of a scheduler"));
  here.write("steps.jsonl", "{\"by_rank\": [[0]]}\n{\"lengths\": [10], \"by_rank\": [[0, 1]]}\n");
  const std::string wrong = here.refusal("check steps.jsonl");
  CHECK(has_line(wrong, "steps.jsonl:2:35: error: there is no sequence 1: the batch has 1"));
}

TEST_CASE("what is wrong with a scheduler's output is told in one go, and nothing is written", "[import-plan]") {
  const Workplace here;
  here.write("groups.json", R"({"lengths": [8000, 500, 700], "ranks": 4, "micro_batches": [
    {"ranks": [0, 4], "sequences": [0]},
    {"size": 1, "sequences": [0]}]})");
  const std::string wrong = here.refusal("import-plan groups.json --out plan.json --capacity 4Ki");
  CHECK(has_line(wrong, "groups.json:2:5: error: there is no rank 4: the pool has 4"));
  CHECK(has_line(wrong, "groups.json:3:31: error: sequence 0 is here a second time"));
  CHECK(has_line(wrong, "groups.json:1:1: error: in no group: sequences 1, 2"));
  CHECK_FALSE(fs::exists(here.folder() / "plan.json"));
  here.write("two.jsonl", "{\"lengths\": [10], \"by_rank\": [[0]]}\n{\"lengths\": [10], \"by_rank\": [[0]]}\n");
  const std::string files = here.refusal("import-plan two.jsonl --out plan.json --capacity 4Ki");
  CHECK(has_line(files, "2 steps need a file each"));
  here.run("import-plan two.jsonl --out '{step}.json' --capacity 4Ki");
  CHECK(fs::exists(here.folder() / "1.json"));
}

}  // namespace
}  // namespace hdpsim::spec
