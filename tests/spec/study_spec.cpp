#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

constexpr char tiny[] = "study configs/studies/tiny.yaml";
constexpr const char* stable_files[] = {"result.json", "runs.csv",   "steps.csv", "ranks.csv",
                                        "links.csv",   "memory.csv", "study.yaml"};

void check_same_results(const Workplace& here, const std::string& folder, const std::string& other) {
  for (const char* name : stable_files) check_same_file(here, folder + "/" + name, other + "/" + name);
}

// Without the best static mesh, whose runs are kept beside those of the plans.
constexpr char tiny_of_plans[] = "study configs/studies/tiny.yaml --set compare_to=hdp-naive";
constexpr char with_timelines[] =
    "study configs/studies/tiny.yaml --set compare_to=hdp-naive --set output.perfetto=true";

/// A workplace with the results of the tiny study and its timelines in `whole`, which one job has made once for all
/// tests.
struct TinyResults : Workplace {
  TinyResults() {
    static const std::unique_ptr<Workplace> made = [] {
      auto first = std::make_unique<Workplace>();
      REQUIRE(first->hdpsim(fmt::format("{} --jobs 1 --out whole", with_timelines)).code == 0);
      return first;
    }();
    fs::copy(made->folder() / "whole", folder() / "whole", fs::copy_options::recursive);
  }
  /// `to` has the journal of `whole` with every second run alone, and nothing else.
  void keep_half_of_the_runs(const std::string& to) const {
    fs::create_directories(folder() / to);
    std::istringstream whole(read("whole/journal.jsonl"));
    std::string half;
    std::string line;
    for (int number = 0; std::getline(whole, line); ++number) half += number % 2 == 0 ? line + "\n" : "";
    write(to + "/journal.jsonl", half);
  }
};

TEST_CASE("the table of the tiny study is the golden one", "[study]") {
  const Workplace here;
  const Outcome outcome = here.run(fmt::format("{} --out one", tiny));
  CHECK(outcome.out == golden("tiny_table.txt", outcome.out));
}

// What a run of results is checked for besides its bytes.
using RunCheck = void (*)(const nlohmann::json& run);

void has_intervals(const nlohmann::json& run) {
  // 1Mi tokens at a token a microsecond.
  CHECK(run.at("breakdown_s").at("data_wait").get<double>() == Approx(1.048576));
  CHECK(run.at("goodput").at("share") < 1);
  const auto& interval = run.at("uncertainty").at("step_time_s");
  CHECK(interval.at("p5") < run.at("step_time_s").at("mean"));
  CHECK(interval.at("p95") > run.at("step_time_s").at("mean"));
}

void says_what_its_set_up_rests_on(const nlohmann::json& run) {
  CHECK(run.at("not_modelled") == nlohmann::json::array({"memory_per_peer", "compute_beside_communication"}));
  CHECK(run.at("memory_gb").at("connections").is_null());
  CHECK(run.at("connections").at("groups") >= 1);
  CHECK(run.at("breakdown_s").at("overhead") > 1);
}

void says_what_happened_to_loaders(const nlohmann::json& run) {
  const auto& loading = run.at("loading");
  CHECK(loading.at("loaders") >= 5);
  CHECK(loading.at("memory_gb") > 5);
  CHECK(loading.at("lost") == 1);
  const auto is_lost = [](const auto& event) { return event.at("what") == "lost"; };
  const auto lost = std::find_if(loading.at("events").begin(), loading.at("events").end(), is_lost);
  REQUIRE(lost != loading.at("events").end());
  CHECK(lost->at("source") == "web");
  CHECK(lost->at("pause_s") > 1000);
  CHECK(run.at("breakdown_s").at("data_wait").get<double>() > 100 / 8.0);
}

TEST_CASE("results have the same bytes whatever the number of jobs, when resumed, and of the resolved study",
          "[study]") {
  struct Case {
    std::string study;
    RunCheck check;
  };
  for (const auto& [study, check] : std::initializer_list<Case>{
           {fmt::format("{} --set data.steps=2 --set 'noise={{device: {{cv: 0.02}}, step: {{cv: 0.02}}}}' "
                        "--set 'uncertainty={{samples: 20}}' --set 'failures={{node_mtbf: 1000 h, checkpoint: 60 s}}' "
                        "--set 'loading={{style: spmd, bytes_per_token: 4 B, tokens_per_s: 1M, prefetch: 0}}'",
                        tiny),
            has_intervals},
           {fmt::format("{} --set data.steps=1 --set mesh.connections=cold --set mesh.groups=communicators",
                        tiny_of_plans),
            says_what_its_set_up_rests_on},
           {fmt::format("{} --set data.steps=8 --set 'loading={{style: actors, bytes_per_token: 4 B, tokens_per_s: 1M, "
                        "sources: [{{name: web, access: 1 GB}}, {{name: books, count: 4, access: 1 GB}}], "
                        "autoscale: {{window: 2}}, deaths: {{at: [{{step: 3, source: web}}], restart: 1000 s}}}}'",
                        tiny),
            says_what_happened_to_loaders},
           {"study configs/studies/two-jobs.yaml --set data.steps=2 --set compare_to=null", nullptr}}) {
    CAPTURE(study);
    const Workplace here;
    here.run(study + " --jobs 1 --out one");
    here.run(study + " --jobs 4 --out four");
    check_same_results(here, "one", "four");
    std::string journal = here.read("four/journal.jsonl");
    const std::size_t first = journal.find('\n') + 1;  // behind the title
    here.write("four/journal.jsonl", journal.erase(first, journal.find('\n', first) + 1 - first));
    CHECK(line_count(here.run(study + " --out four --resume").err) == 1);
    check_same_results(here, "one", "four");
    here.run("study one/study.yaml --out again");
    check_same_results(here, "one", "again");
    for (const auto& run : nlohmann::json::parse(here.read("one/result.json")).at("runs")) {
      if (check != nullptr) check(run);
    }
  }
}

TEST_CASE("whole pipelines in pods are faster where gradients hide behind passes, and slower where they do not",
          "[study]") {
  const Workplace here;
  const std::string table = here.run(
                                    "study configs/studies/placement.yaml --out placed --set 'sweep={training: [{}, "
                                    "{overlap_grad_reduce: true, "
                                    "overlap_param_gather: true}], mesh.nodes.choose: [gpu_packing, arnold]}'")
                                .out;
  const auto runs = nlohmann::json::parse(here.read("placed/result.json"))["runs"];
  REQUIRE(runs.size() == 4);
  const auto step = [&](std::size_t run) { return runs[run]["step_time_s"]["mean"].get<double>(); };
  CHECK(step(0) < step(1));
  CHECK(step(2) > step(3));
  CHECK(runs[0]["placed"]["pipeline_max"] == 4);
  CHECK(runs[1]["placed"]["pipeline_max"] == 0);
  CHECK(runs[1]["placed"]["score"] == 0);
  CHECK(runs[1]["placed"]["gap"] == 0);
  CHECK_THAT(table, Catch::Contains("32 of 36 free nodes by arnold (alpha 0) in 4 pods"));
}

TEST_CASE("another job slows the static mesh most, and links.csv shows what it sends", "[study]") {
  const Workplace here;
  here.run("study configs/studies/two-jobs.yaml --set data.steps=2 --set compare_to=null --out one");
  const auto runs = nlohmann::json::parse(here.read("one/result.json"))["runs"];
  REQUIRE(runs.size() == 6);
  const auto slowdown = [&](std::size_t plan) {
    const auto mean = [&](std::size_t run) { return runs[run]["step_time_s"]["mean"].get<double>(); };
    return mean(3 + plan) / mean(plan);
  };
  CHECK(runs[0]["background"].empty());
  CHECK(runs[3]["background"][0]["name"] == "neighbour");
  CHECK(slowdown(0) > 1.2);
  CHECK(slowdown(2) >= 1);
  CHECK(slowdown(2) < 1.02);

  std::istringstream links(here.read("one/links.csv"));
  std::map<char, int> loaded_by_others;  // by point
  for (std::string line; std::getline(links, line);) loaded_by_others[line[0]] += line.ends_with(",0,0") ? 0 : 1;
  CHECK(loaded_by_others['0'] == 0);
  CHECK(loaded_by_others['1'] > 0);
}

TEST_CASE("a resumed study simulates only what is missing and gives the same bytes: results, report and timelines",
          "[study]") {
  const TinyResults here;
  here.keep_half_of_the_runs("half");
  const Outcome resumed = here.hdpsim(fmt::format("{} --jobs 3 --out half --resume", with_timelines));
  CHECK(resumed.code == 0);
  CHECK(line_count(resumed.err) == 3);  // a line for every run that is simulated
  check_same_results(here, "whole", "half");
  CHECK((here.read("whole/report.html") == here.read("half/report.html")));
  const std::vector<std::string> timelines = files_in(here.folder() / "whole/timelines");
  CHECK(timelines == std::vector<std::string>{"point-0-hdp-balance.json.gz", "point-0-hdp-naive.json.gz",
                                              "point-0-static.json.gz", "point-1-hdp-balance.json.gz",
                                              "point-1-hdp-naive.json.gz", "point-1-static.json.gz"});
  for (const std::string& name : timelines) {
    CAPTURE(name);
    CHECK((here.read("whole/timelines/" + name) == here.read("half/timelines/" + name)));
    CHECK_THAT(here.read("whole/report.html"), Catch::Contains("timelines/" + name));
  }
}

TEST_CASE("a degraded link slows the step, and links.csv names it first", "[study]") {
  const Workplace here;
  // The plan whose rings cross that link: a policy that is free to avoid it need not.
  const std::string study =
      "study configs/studies/tiny.yaml --set sweep={} --set plans=[hdp-naive] --set compare_to=null ";
  here.run(study + "--out sound");
  here.run(study + "--set 'cluster.links={node 1 nic 3: 0.1}' --out degraded");
  const auto mean_step = [&](const std::string& folder) {
    const auto result = nlohmann::json::parse(here.read(folder + "/result.json"));
    return result.at("runs").at(0).at("step_time_s").at("mean").get<double>();
  };
  CHECK(mean_step("degraded") > 1.1 * mean_step("sound"));
  const std::string links = here.read("degraded/links.csv");
  const std::string row = "\n0,hdp-naive,";
  const std::size_t first = links.find(row);
  REQUIRE(first != std::string::npos);
  const std::string busiest = links.substr(first + row.size());
  CHECK_THAT(busiest.substr(0, busiest.find('\n')), Catch::Matches("node 1 nic 3 (in|out),2\\.24,.*"));
}

TEST_CASE("what a study is told to do without, its resolved form is without", "[study]") {
  const Workplace here;
  here.run(
      fmt::format("{} --set 'noise={{step: {{cv: 0.1}}}}' --without noise --without balance --set "
                  "data.steps=1 --out without",
                  tiny_of_plans));
  here.run(fmt::format("{} --set plans.2.hdp-balance.balance=none --set noise.spread=0 --set data.steps=1 --out set",
                       tiny_of_plans));
  check_same_results(here, "without", "set");
  const std::string unknown = here.refusal(fmt::format("{} --without magic --without ofload --out results", tiny));
  CHECK_THAT(unknown, Catch::Contains("there is no mechanism 'magic'"));
  CHECK_THAT(unknown, Catch::Contains("did you mean 'offload'?"));
  CHECK_FALSE(fs::exists(here.folder() / "results"));
}

TEST_CASE("runs of another study are not taken, those of a point that both have are", "[study]") {
  const TinyResults here;
  const std::string resumed = fmt::format("{} --out whole --resume", with_timelines);
  CHECK(line_count(here.run(resumed + " --set data.seed=2").err) == 6);
  CHECK(line_count(here.run(resumed + " --set 'sweep.data.context=[32Ki, 64Ki]'").err) == 3);
}

TEST_CASE("a kept run that is damaged is named and simulated again", "[study]") {
  const TinyResults here;
  std::string changed = here.read("whole/journal.jsonl");
  const auto time = changed.find("\"time_ps\":") + 10;
  changed[time] = changed[time] == '9' ? '8' : '9';
  here.write("whole/journal.jsonl", changed);
  const std::string named = "whole/journal.jsonl:2:1: this line is damaged; it is simulated again\n";
  CHECK_THAT(here.hdpsim("explain whole").err, Catch::StartsWith(named));
  const std::string runs = here.read("whole/runs.csv");
  const Outcome resumed = here.hdpsim(fmt::format("{} --out whole --resume", with_timelines));
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.err, Catch::StartsWith(named));
  CHECK(line_count(resumed.err) == 2);  // and that one is simulated
  CHECK((here.read("whole/runs.csv") == runs));
}

TEST_CASE("a study that is told to stop keeps its finished runs and nothing half-written", "[study]") {
  const Workplace here;
  // Two runs that are done at once, and two that take too long.
  here.write(
      "long.yaml",
      "name: long\ncluster: {preset: a100-rail-3tier, gpus: 8}\nmodel: {preset: llama-7b}\nprofile: bytescale-implied\n"
      "data: {lengths: {preset: github}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}\nmesh: {tp: 2}\n"
      "plans: [static, hdp-balance]\nsweep: {data.steps: [1, 1000000]}\n");
  Background study(here, "study long.yaml --out results --jobs 2");
  study.await([&] { return line_count(here.read("results/journal.jsonl")) >= 1 + 2; });
  study.send(SIGTERM);
  CHECK(study.wait() == 128 + SIGTERM);
  CHECK(files_in(here.folder() / "results") == std::vector<std::string>{"journal.jsonl"});
  const Outcome rest = here.hdpsim("study long.yaml --out results --resume --set 'sweep.data.steps=[1, 2]'");
  CHECK(rest.code == 0);
  CHECK(line_count(rest.err) == 2);
}

TEST_CASE("the parts of every run sum to its step time", "[study]") {
  const auto result = nlohmann::json::parse(TinyResults().read("whole/result.json"));
  CHECK(result["schema"] == "hdpsim.result/1");
  REQUIRE(result["runs"].size() == 6);
  for (const auto& run : result["runs"]) {
    CAPTURE(run["plan"], run["point"]);
    double sum = 0;
    for (const auto& part : run["breakdown_s"]) {
      CHECK(part >= 0.0);
      sum += part.get<double>();
    }
    CHECK(sum == Approx(run["step_time_s"]["mean"].get<double>()).epsilon(1e-12));
    double evidence = 0;
    for (const auto& share : run["evidence"]) evidence += share.get<double>();
    CHECK(evidence == Approx(1));
    CHECK(run["step_time_s"]["p5"] <= run["step_time_s"]["p50"]);
    CHECK(run["step_time_s"]["p50"] <= run["step_time_s"]["p95"]);
    CHECK(run["rank_busy_s"]["max"] <= run["step_time_s"]["mean"]);
    CHECK(run["mfu"] > 0.0);
    CHECK(run["mfu"] < 1.0);
    CHECK(run["events"] > 0);
  }
}

TEST_CASE("every format says the same", "[study]") {
  const TinyResults here;
  const std::string resumed = fmt::format("{} --out whole --resume", with_timelines);
  CHECK(here.hdpsim(resumed + " --format csv").out == here.read("whole/runs.csv"));
  CHECK(here.hdpsim(resumed + " --format json").out == here.read("whole/result.json"));
  CHECK(line_count(here.read("whole/runs.csv")) == 1 + 6);
  CHECK(line_count(here.read("whole/steps.csv")) == 1 + 6 * 4);
  CHECK(line_count(here.read("whole/ranks.csv")) == 1 + 6 * 16);
  CHECK(line_count(here.read("whole/timing.csv")) == 1 + 6);
}

TEST_CASE("a trace of lengths is replayed step by step", "[study]") {
  const Workplace here;
  here.run("trace generate --preset github --steps 4 --context 64Ki --tokens-per-step 1Mi --seed 1 --out drawn.csv");
  const std::string options = "--set sweep=null --set data.context=64Ki --format csv";
  const Outcome drawn = here.hdpsim(fmt::format("{} {}", tiny_of_plans, options));
  const Outcome replayed =
      here.hdpsim(fmt::format("{} {} --set 'data.lengths={{file: drawn.csv}}'", tiny_of_plans, options));
  CHECK(replayed.code == 0);
  // The same rows, with what is said of a trace behind them.
  std::istringstream of_drawn(drawn.out);
  std::istringstream of_replayed(replayed.out);
  std::string row;
  for (std::string expected; std::getline(of_drawn, expected);) {
    REQUIRE(std::getline(of_replayed, row));
    CHECK(row.starts_with(expected + ','));
  }
  CHECK_FALSE(std::getline(of_replayed, row));
}

// A plan that asks for more micro-batches than a step has sequences.
constexpr char demanding[] = "megatron-dp-balanced: {micro_batches_divided_by: 65536}";

TEST_CASE("a plan that is refused costs its run, and the study ends well", "[study][refusal]") {
  const Workplace here;
  const std::string study =
      fmt::format("study configs/studies/tiny.yaml --set 'plans=[static, {}]' --set 'sweep={{}}'", demanding);
  const Outcome whole = here.run(study + " --out whole");
  CHECK_THAT(whole.out, Catch::Contains("refused: megatron-dp-balanced makes "));
  const auto result = nlohmann::json::parse(here.read("whole/result.json"));
  CHECK_FALSE(result.at("runs").at(0).contains("refusal"));
  CHECK_THAT(result.at("runs").at(1).at("refusal").get<std::string>(),
             Catch::StartsWith("--set:1:16: megatron-dp-balanced makes "));
  CHECK_THAT(here.read("whole/report.html"),
             Catch::Contains("\"refused\":[{\"point\":0,\"plan\":\"megatron-dp-balanced\""));

  const Outcome resumed = here.run(study + " --out whole --resume");
  CHECK(resumed.err.empty());  // no run is simulated again
  CHECK(resumed.out == whole.out);

  CHECK_THAT(here.run("explain whole").out, Catch::Contains("megatron-dp-balanced is refused: whole/study.yaml:"));
}

TEST_CASE("a study of which every plan is refused is wrong input", "[study][refusal]") {
  const Workplace here;
  CHECK_THAT(
      here.refusal(fmt::format(
          "study configs/studies/tiny.yaml --set 'plans=[{}]' --set 'sweep={{}}' --set compare_to=null --out none",
          demanding)),
      Catch::Contains("error: megatron-dp-balanced makes "));
  CHECK_FALSE(fs::exists(here.folder() / "none/result.json"));
}

}  // namespace
}  // namespace hdpsim::spec
