#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("list names every shipped thing with a line on it", "[list]") {
  const Workplace here;
  const auto lines = [&](const std::string& what) { return line_count(here.hdpsim("list " + what).out); };
  const auto files = [&](const char* folder, const char* extension) {
    std::int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(here.folder() / folder)) {
      count += entry.path().extension() == extension ? 1 : 0;
    }
    return count;
  };
  CHECK(lines("clusters") == files("configs/clusters", ".yaml"));
  CHECK(lines("models") == files("configs/models", ".json"));
  CHECK(lines("profiles") == files("calib/profiles", ".yaml"));
  CHECK(lines("lengths") == files("traces", ".csv"));
  CHECK_THAT(here.hdpsim("list clusters").out, Contains("h100-rail") && Contains("8 x H100-80GB a node; H100 nodes"));
  const std::string models = here.hdpsim("list models").out;
  CHECK_THAT(models, Contains("llama-7b") && Contains("32 layers of 4096") && Contains("1,030 billion parameters"));
  CHECK_THAT(models, !Contains(" 0 heads") && !Contains("e+"));
  CHECK_THAT(here.hdpsim("list profiles").out, Contains("H100-80GB, published"));
  CHECK_THAT(here.hdpsim("list plans").out, StartsWith("static ") && Contains("\nhdp-balance "));
  CHECK(here.hdpsim("list cluster").code == 2);
}

TEST_CASE("every shipped cluster runs a study with the profile of its device", "[list]") {
  const Workplace here;
  for (const auto& entry : fs::directory_iterator(here.folder() / "configs/clusters")) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".yaml" || name == "laptop-cpu") continue;  // whose study is laptop.yaml
    CAPTURE(name);
    const std::string gpus = name == "rtx4090-workstation" ? "4" : "8";
    here.write("small.yaml", "name: small\ncluster: {preset: " + name + ", gpus: " + gpus +
                                 "}\nmodel: {preset: llama-160m}\n"
                                 "data: {lengths: {fixed: 2048}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}\n"
                                 "mesh: {tp: 1, capacity: 8Ki}\nplans: [static]\n");
    CHECK_THAT(here.run("study small.yaml").out, Contains("static"));
  }
}

TEST_CASE("a program without its configs says where it looked for them", "[command_line]") {
  const Workplace here;
  fs::remove(here.folder() / "configs");
  fs::copy_file(HDPSIM_BINARY, here.folder() / "alone");
  (void)here.hdpsim("--version", "./alone cluster show h100-rail 2>alone.txt;");
  CHECK_THAT(here.read("alone.txt"), StartsWith("no shipped configs were found: looked in ") &&
                                         Contains((here.folder() / "share/hdpsim").string() + "; --data-dir names") &&
                                         Contains("there is no shipped cluster 'h100-rail'"));
  CHECK_THAT(here.refusal("--data-dir . cluster show h100-rail"),
             StartsWith("no shipped configs were found: looked in .; --data-dir names"));
}

TEST_CASE("lengths come from a command line, from standard input and from a column that is found", "[trace]") {
  const Workplace here;
  here.write("docs.csv", "doc_id,n_tokens,source\n1,4096,web\n2,30000,web\n3,1000,code\n");
  const std::string study = "study configs/studies/tiny.yaml --set sweep={} --set data.steps=1 --lengths docs.csv";
  CHECK_THAT(here.run(study).out, Contains("\nlengths are those of the column n_tokens\n"));
  CHECK_THAT(here.run(study + " --column n_tokens").out, !Contains("lengths are those of"));
  CHECK(here.hdpsim("study configs/studies/tiny.yaml --column n_tokens").code == 2);
  CHECK(here.hdpsim("study configs/studies/tiny.yaml --lengths -").code == 2);
  // Of the presets and contexts that this study sweeps, the contexts are left.
  CHECK_THAT(
      here.run("study configs/studies/bytescale-7b.yaml --lengths docs.csv --set data.steps=1 --set 'plans=[static]'")
          .out,
      Contains("\ndata.context 256Ki\n") && Contains("\ndata.context 2Mi\n"));

  const Outcome file = here.hdpsim("trace describe docs.csv --format json");
  CHECK(here.run("trace describe - --format json", "cat docs.csv |").out == file.out);
  CHECK(here.hdpsim("trace describe - --format json", "printf '4096\\n30000\\n1000\\n' |").out == file.out);
}

TEST_CASE("a study says which profile it took, and its results repeat it", "[study]") {
  const Workplace here;
  here.write("mine.yaml",
             "name: mine\ncluster: {preset: h100-rail, gpus: 16}\nmodel: {preset: llama-7b}\n"
             "data: {lengths: {fixed: 8Ki}, context: 8Ki, tokens_per_step: 128Ki, steps: 1}\n"
             "mesh: {tp: 2}\nplans: [static]\n");
  CHECK_THAT(here.run("study mine.yaml --out mine").out, Contains("costs: h100-published (published)"));
  CHECK_THAT(here.read("mine/study.yaml"), Contains("profile: h100-published"));
  CHECK(fs::exists(here.folder() / "mine/report.html"));
}

TEST_CASE("speed-ups over a tuned baseline name its mesh, and cost one search", "[study]") {
  const Workplace here;
  const std::string space =
      "tune.space={mesh.tp: [1, 2, 4], mesh.pp: [1], mesh.capacity: [8Ki, 16Ki], training.recompute: [none]}";
  const std::string study =
      "study configs/studies/tune.yaml --set data.steps=2 --set 'plans=[static, hdp-balance]' "
      "--set 'compare_to={static: tuned}' --out fair --set '" +
      space + "'";
  const Outcome outcome = here.run(study);
  CHECK_THAT(outcome.out, Contains("\n  static (tuned)  ") && Contains("\nstatic (tuned): tp "));
  CHECK_THAT(outcome.err, Contains("tuning static, point 1 of 1, "));
  const auto speedup = nlohmann::json::parse(here.read("fair/result.json"))["runs"][1]["speedup"];
  CHECK(speedup["versus"] == "static (tuned)");
  CHECK_THAT(here.read("fair/report.html"), Contains("static (tuned): tp "));
  const Outcome again = here.hdpsim(study + " --resume");
  CHECK(again.out == outcome.out);
  CHECK(again.err.empty());  // nothing is simulated or searched for
}

TEST_CASE("explain tells what a larger capacity is worth, and that a baseline was not tuned", "[explain]") {
  const Workplace here;
  const auto study = [&](const std::string& capacity) {
    const Outcome outcome =
        here.hdpsim("study configs/studies/tiny.yaml --set sweep={} --set data.steps=1 --set data.context=64Ki --out " +
                    capacity + " --set mesh.capacity=" + capacity);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(here.read(capacity + "/result.json"))["runs"];
  };
  const auto small = study("4Ki");
  const auto large = study("auto");
  const Outcome told = here.run("explain 4Ki");
  CHECK_THAT(told.out, Contains("\n  What you could change, planned anew") && Contains("\n    mesh.capacity=auto "));
  CHECK_THAT(told.out,
             Contains("\nspeed-ups are over static (p2p) as stated; over best: over static with the fastest sharing"));
  const auto plans = nlohmann::json::parse(here.hdpsim("explain 4Ki --format json").out)["plans"];
  const auto seconds = [](const auto& run) { return run["step_time_s"]["mean"].template get<double>(); };
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    CAPTURE(plan);
    for (const auto& advice : plans[plan]["advice"]) {
      if (advice["set"] != nlohmann::json::array({"mesh.capacity=auto"})) continue;
      CHECK(advice["step_time_s"] == Approx(seconds(large[plan])));
      CHECK(advice["gain"] == Approx(1 - seconds(large[plan]) / seconds(small[plan])));
    }
  }
}

}  // namespace
}  // namespace hdpsim::spec
