#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"

namespace hdpsim::spec {
namespace {

TEST_CASE("help and version are answers, not errors", "[cli]") {
  const Workplace here;
  CHECK(here.run("--version").out.starts_with("hdpsim "));
  for (const char* command : {"", "study", "plan", "check", "calibrate", "trace", "trace describe", "trace generate",
                              "trace convert", "trace fit", "execute", "compare", "validate", "comm", "cluster show"}) {
    const Outcome help = here.hdpsim(fmt::format("{} --help", command));
    CAPTURE(command, help.err);
    CHECK(help.code == 0);
    const bool has_example = help.out.find("Example:\n  hdpsim ") != std::string::npos ||
                             help.out.find("Examples:\n  hdpsim ") != std::string::npos;
    CHECK((has_example || std::string(command) == "trace"));
    CHECK(help.err.empty());
  }
}

TEST_CASE("a mistake on the command line ends with 2 and a word on stderr", "[cli]") {
  const Workplace here;
  for (const char* arguments :
       {"", "studdy", "study", "study x.yaml --frmat csv", "study x.yaml --format xml", "study x.yaml --jobs 0",
        "study x.yaml --jobs many", "plan x.yaml --step -1", "trace", "trace generate --out x.csv",
        "study configs/studies/tiny.yaml --resume", "--data-dir /nowhere study x.yaml",
        "plan configs/studies/tiny.yaml", "plan configs/studies/tiny.yaml --plan nobody",
        "plan configs/studies/tiny.yaml --plan static --point 2", "check nothing.yaml", "check nothing.csv"}) {
    const std::string outcome = here.refusal(arguments);
    CAPTURE(arguments);
    CHECK_FALSE(outcome.empty());
  }
}

TEST_CASE("all problems of a study are told at once and nothing is written", "[cli]") {
  const Workplace here;
  here.write("bad.yaml",
             "name: bad\n"
             "cluster: {preset: a100-rail-3tier, gpus: 31, node: {nics: {bandwidth: 200}}}\n"
             "model: {preset: llama-8b}\n"
             "profile: bytescale-implid\n"
             "data:\n"
             "  lengths: {preset: github, lowest: 0}\n"
             "  context: 256Ki\n"
             "  context: 512Ki\n"
             "  steps: some\n"
             "  sed: 3\n"
             "mesh: {tp: 2, pp: 2, schedule: 1f1, capacity: 0}\n"
             "plans: [statik, static: {cp: 3}]\n"
             "compare_to: dynamic\n"
             "speed: fast\n");
  const std::string outcome = here.refusal("study bad.yaml --out results");
  CHECK(outcome == golden("bad_study.txt", outcome));
  CHECK_FALSE(fs::exists(here.folder() / "results"));
  CHECK(here.hdpsim("check bad.yaml").err == outcome);
}

TEST_CASE("a machine that refuses ends with 3 and leaves nothing half-written", "[cli]") {
  const Workplace here;
  here.write("file", "not a folder");
  CHECK_THAT(here.machine_refusal("study configs/studies/tiny.yaml --out file/results"),
             Catch::Contains("cannot write file/results"));
  CHECK(here.hdpsim("plan configs/studies/tiny.yaml --plan static --out nowhere/plan.json").code == 3);
  if (!fs::exists("/dev/full")) return test::say_not_run("there is no /dev/full here");
  for (const char* arguments :
       {"study configs/studies/tiny.yaml --set sweep={} --set data.steps=1 --set compare_to=null >/dev/full",
        "plan configs/studies/tiny.yaml --plan static >/dev/full", "check configs/studies/tiny.yaml >/dev/full",
        "--version >/dev/full", "--help >/dev/full"}) {
    CAPTURE(arguments);
    CHECK(here.hdpsim(arguments).code == 3);
  }
}

TEST_CASE("check accepts every shipped input file", "[cli]") {
  const Workplace here;
  for (const char* folder : {"configs/clusters", "configs/clusters/examples", "configs/models", "configs/studies",
                             "configs/tasks", "calib/profiles", "traces"}) {
    for (const std::string& name : files_in(here.folder() / folder)) {
      const auto is_one = [&name](std::string_view ending) { return name.ends_with(ending); };
      constexpr std::array<std::string_view, 5> others = {".md", ".xml", ".py", ".ipynb", ".sh"};
      if (std::any_of(others.begin(), others.end(), is_one)) continue;
      const Outcome outcome = here.hdpsim(fmt::format("check {}/{}", folder, name));
      CAPTURE(name, outcome.err);
      const bool refused_for_now = outcome.err.find("yet") != std::string::npos;
      CHECK((outcome.code == 0 || (outcome.code == 2 && refused_for_now)));
    }
  }
}

TEST_CASE("check says what a model has and what of its file it leaves out", "[cli]") {
  const Workplace here;
  CHECK(here.run("check configs/models/qwen3-vl-32b.json").out ==
        "configs/models/qwen3-vl-32b.json: a model of 32.8G parameters in 64 layers: fine\n"
        "  note: left out is its encoder of 'vision_config'\n");
  // DeepSeek-V3 has 671 billion parameters, 37 of them active, and 61 layers, without its multi-token prediction.
  CHECK_THAT(
      here.hdpsim("check configs/models/deepseek-v3.json").out,
      Catch::Contains("a model of 683G parameters, 38.2G of them active, in 62 layers, of which 1, of 11.6G, predicts "
                      "further tokens: fine\n"));
  // A further token may be predicted by several layers.
  CHECK_THAT(here.hdpsim("check configs/models/nemotron-3-super.json").out,
             Catch::Contains("of which 2, of 2.94G, predict further tokens: fine\n"));
}

TEST_CASE("check tells what is wrong in a file of lengths, and what it cannot tell", "[cli]") {
  const Workplace here;
  here.write("lengths.csv", "length\n100\n-5\nmany\n");
  const Outcome lengths = here.hdpsim("check lengths.csv");
  CHECK(lengths.code == 2);
  CHECK(lengths.err.find("lengths.csv:3:1: error: ") != std::string::npos);
  CHECK(lengths.err.find("lengths.csv:4:1: error: ") != std::string::npos);
  here.write("riddle.yaml", "x: 1\n");
  CHECK(here.hdpsim("check riddle.yaml").err.find("cannot tell what kind of file this is") != std::string::npos);
  CHECK(here.hdpsim("check riddle.yaml --kind cluster").code == 2);
}

TEST_CASE("all plans of a study are held against what no plan beats", "[cli]") {
  const Workplace here;
  const std::string plans =
      " --set 'plans=[static, hdp-balance, {megatron-dp-balanced: {micro_batches_divided_by: 1000}}, "
      "megatron-hybrid-cp]'";
  const Outcome fine = here.run("plan configs/studies/tiny.yaml --estimate" + plans);
  for (const char* name : {"static ", "hdp-balance ", "megatron-hybrid-cp "}) {
    const std::size_t line = fine.out.find(fmt::format("\n{}", name));
    REQUIRE(line != std::string::npos);
    double micro_batches = 0;
    double step = 0;
    double over_bound = 0;
    std::istringstream(fine.out.substr(line + 1 + std::string(name).size())) >> micro_batches >> step >> over_bound;
    CHECK(micro_batches >= 1);
    CHECK(over_bound >= 1);
  }
  CHECK(fine.out.find("which it cannot split") != std::string::npos);  // a refusal hides no other plan
  const std::string json = here.hdpsim("plan configs/studies/tiny.yaml --estimate --format json" + plans).out;
  CHECK(json.find("\"refusal\": \"megatron-dp-balanced makes") != std::string::npos);
  CHECK(json.find("\"bound_s\": ") != std::string::npos);
  const std::string csv = here.hdpsim("plan configs/studies/tiny.yaml --estimate --format csv" + plans).out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);
  CHECK(here.hdpsim("plan configs/studies/tiny.yaml --estimate --plan static").code == 2);
  CHECK(here.hdpsim("plan configs/studies/tiny.yaml --plan static --format json").code == 2);
}

TEST_CASE("lengths can be drawn, described, converted and fitted", "[cli]") {
  const Workplace here;
  here.run("trace generate --preset github --count 20k --seed 3 --out github.csv");
  const Outcome described = here.run("trace describe github.csv --format json");
  CHECK(described.out.find("\"sequences\": 20000,") != std::string::npos);
  CHECK(here.hdpsim("trace describe github.csv").out != described.out);
  here.run("trace convert github.csv --to npy");
  CHECK(here.hdpsim("trace describe github.npy --format json").out == described.out);
  here.run("trace fit github.npy --format csv");
  here.run("trace generate --lognormal 7 1 --steps 3 --context 8Ki --tokens-per-step 64Ki --out steps.csv");
  CHECK(here.read("steps.csv").find("step") != std::string::npos);
}

TEST_CASE("several assignments may follow one --set, and what is no assignment is an argument of its own", "[cli]") {
  const Workplace here;
  const std::string plan = "plan configs/studies/tiny.yaml --plan static --out plan.json ";
  here.run(plan + "--set mesh.capacity=16Ki --set data.seed=7");
  const std::string one_by_one = here.read("plan.json");
  for (const char* changes : {"--set mesh.capacity=16Ki data.seed=7", "--set=mesh.capacity=16Ki data.seed=7"}) {
    CAPTURE(changes);
    here.run(plan + changes);
    CHECK(here.read("plan.json") == one_by_one);
  }
  here.run("plan --plan static --out plan.json --set mesh.capacity=16Ki data.seed=7 configs/studies/tiny.yaml");
  CHECK(here.read("plan.json") == one_by_one);
  CHECK_THAT(here.refusal("study configs/studies/tiny.yaml --set mesh.capacity=16Ki nonsense=3"),
             Catch::Contains("nonsense"));
  // A file of such a name is a file.
  here.write("a=b", "nothing\n");
  CHECK_THAT(here.hdpsim("check --kind study a=b").err, Catch::Contains("a=b"));
}

}  // namespace
}  // namespace hdpsim::spec
