#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/synthetic_training.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;
using test::SyntheticTraining;

constexpr char study_of_trace[] =
    "name: small\ncluster: {preset: h100-rail, gpus: 8}\nmodel: {preset: llama-7b}\n"
    "profile: h100-published\ndata: {lengths: {preset: github}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}\n"
    "mesh: {capacity: 8Ki}\nplans: [static: {cp: 1}, hdp-naive]\n";

/// A workplace with the trace of a training that follows known laws.
struct TracedWorkplace : Workplace {
  TracedWorkplace() {
    SyntheticTraining training({});
    training.everything();
    training.trace().write(folder() / "rank0.json.gz");
    training.trace().write(folder() / "rank0.json");
    write("study.yaml", study_of_trace);
  }
};

TEST_CASE("a trace becomes a profile that studies use", "[calibrate]") {
  const TracedWorkplace here;
  const Outcome outcome = here.run("calibrate --from-trace rank0.json.gz --like h100-published --out out/traced.yaml");
  for (const char* text : {"NVIDIA H100 80GB HBM3", "time by class", "attention forward", "from the traces",
                           "host_issue", "kept of h100-published (published)", "unclassified: 0.0 %"}) {
    CHECK_THAT(outcome.out, Contains(text));
  }
  CHECK_THAT(outcome.err, Contains("the profile is in out/traced.yaml"));
  CHECK_THAT(here.read("out/traced.yaml"),
             Contains("label: traced") && Contains("device_name: \"NVIDIA H100 80GB HBM3\""));
  here.run("check out/traced.yaml");
  const auto result =
      nlohmann::json::parse(here.run("study study.yaml --set profile=out/traced.yaml --format json").out);
  CHECK(result.at("runs").at(0).at("evidence").at("interpolated") > 0);

  // The same plain and compressed, of a cluster and of the device that the trace names.
  const std::string report = here.run("calibrate --from-trace rank0.json --like h100-published").out;
  CHECK(report == outcome.out);
  CHECK(here.run("calibrate --from-trace rank0.json").out == report);
  CHECK(here.run("calibrate --from-trace rank0.json --like h100-rail").out == report);

  // A profile of a trace may start from one.
  const Outcome again = here.run("calibrate --from-trace rank0.json --like out/traced.yaml --out again.yaml");
  CHECK_THAT(again.out, Contains("kept of traced (traced)"));
  here.run("check again.yaml");
}

TEST_CASE("wrong traces and options end with exit code 2 and say what is wrong", "[calibrate]") {
  const TracedWorkplace here;
  const std::string whole = here.read("rank0.json");
  here.write("cut.json", whole.substr(0, whole.size() / 2));
  const std::string bytes = here.read("rank0.json.gz");
  here.write("cut.json.gz", bytes.substr(0, bytes.size() / 2));
  here.write("other.json", "{\"steps\": []}\n");
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    CHECK_THAT(here.refusal("calibrate " + arguments), Contains(text));
    CHECK_FALSE(fs::exists(here.folder() / "t.yaml"));
  };
  refused("--from-trace cut.json --out t.yaml", "the trace ends here: it is not whole");
  refused("--from-trace cut.json.gz --out t.yaml", "cut.json.gz:");
  refused("--from-trace other.json --out t.yaml", "it has no 'traceEvents'");
  refused("--from-trace none.json --out t.yaml", "there is no such file");
  refused("--from-trace study.yaml --out t.yaml", "study.yaml:1:3: error: this is no JSON");
  refused("--from-trace rank0.json --out t.csv", "the fitted profile is a file");
  refused("--from-trace rank0.json --like h100-publshed", "did you mean 'h100-published'?");
  refused("--from-trace rank0.json --from-steps sc21", "--from-trace");
  refused("--from-trace rank0.json --quick", "--quick");
  refused("--gpus-per-node 8", "--from-trace");
  refused("--like h100-published", "add --from-steps, --from-samples, --from-trace or --nccl-tests");
}

TEST_CASE("a trace of hdpsim itself is read, and told from one of a GPU", "[calibrate]") {
  const Workplace here;
  here.write("tiny.json", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96, )"
                          R"("num_hidden_layers": 2, "num_attention_heads": 1, "vocab_size": 64})");
  here.write("fast.yaml",
             "name: fast\ncluster: {preset: laptop-cpu, gpus: 2, node: {gpus: 2}}\nmodel: {hf_config: tiny.json}\n"
             "profile: epyc-cpu\ndata: {lengths: {preset: github}, context: 128, tokens_per_step: 256, steps: 1}\n"
             "mesh: {capacity: 64}\nplans: [static: {cp: 2}]\n");
  here.run("execute fast.yaml --out real");
  CHECK_THAT(here.refusal("calibrate --from-trace real/trace-0.json.gz --like h100-published"),
             Contains("this trace is of hdpsim itself"));
}

TEST_CASE("a trace is laid beside the study of its training", "[compare]") {
  const TracedWorkplace here;
  const Outcome outcome = here.run("compare rank0.json.gz study.yaml");
  for (const char* text : {"plan static", "1 trace, no marked steps: taken for 1", "products and memory-bound",
                           "waiting and the host", "The measured step takes", "than simulated"}) {
    CHECK_THAT(outcome.out, Contains(text));
  }
  const auto result = nlohmann::json::parse(here.run("compare rank0.json.gz study.yaml --format json").out);
  CHECK(result.at("schema") == "hdpsim.trace_comparison/1");
  double measured = 0;
  double simulated = 0;
  for (const auto& activity : result.at("activities")) {
    measured += activity.at("measured_s").get<double>();
    simulated += activity.at("simulated_s").get<double>();
  }
  CHECK(measured == Approx(result.at("step_time_s").at("measured").get<double>()));
  CHECK(simulated == Approx(result.at("step_time_s").at("simulated").get<double>()));

  const std::string naive =
      here.run("compare rank0.json.gz study.yaml --plan hdp-naive --trace-steps 2 --format csv").out;
  CHECK_THAT(naive, Contains("activity,measured_s,simulated_s\n"));

  // With wrong options it says so.
  CHECK(here.hdpsim("compare rank0.json.gz study.yaml --plan hdp-best").code == 2);
  CHECK(here.hdpsim("compare rank0.json.gz study.yaml --out there").code == 2);
  CHECK(here.hdpsim("compare study.yaml --plan static").code == 2);
  CHECK_THAT(here.hdpsim("compare study.yaml study.yaml").err, Contains("it is not JSON from here on"));
  CHECK(here.hdpsim("compare rank0.json.gz").code == 2);
}

}  // namespace
}  // namespace hdpsim::spec
