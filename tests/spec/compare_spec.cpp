#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

const std::string fast_study =
    "name: fast\ncluster: {preset: laptop-cpu, gpus: 2, node: {gpus: 2}}\nmodel: {hf_config: tiny.json}\n"
    "profile: epyc-cpu\ndata: {lengths: {preset: github}, context: 128, tokens_per_step: 256, steps: 2}\n"
    "mesh: {capacity: 64}\nplans: [static: {cp: 2}, hdp-balance]\n";

/// A workplace with a study whose steps take milliseconds.
struct ComparedWorkplace : Workplace {
  ComparedWorkplace() {
    write(
        "tiny.json",
        R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,)"
        R"( "num_attention_heads": 1, "vocab_size": 64})");
    write("fast.yaml", fast_study);
  }
};

// Lines that begin with two spaces, the text and a space.
std::ptrdiff_t compared_rows(const std::string& table, const std::string& text) {
  std::ptrdiff_t rows = 0;
  for (std::size_t at = 0; (at = table.find("\n  " + text + " ", at)) != std::string::npos; ++at) ++rows;
  return rows;
}

TEST_CASE("several plans run in turn, each in a folder of its own, and are compared with medians", "[compare]") {
  const ComparedWorkplace here;
  const Outcome executed =
      here.run("execute fast.yaml --plan static --plan hdp-balance --steps 2 --repeat 3 --out real");
  // 2 steps of 3 runs; of each the first warms up.
  CHECK(compared_rows(executed.out, "static") == 6);
  CHECK(compared_rows(executed.out, "hdp-balance") == 6);
  CHECK_THAT(executed.out, Contains("warm-up") && Contains("plan exposed: "));
  const std::vector<std::string> files = {"measured-0-2.jsonl", "measured-0.jsonl",  "measured-1-2.jsonl",
                                          "measured-1.jsonl",   "plan-0.json",       "plan-1.json",
                                          "predicted-0.jsonl",  "predicted-1.jsonl", "steps.csv",
                                          "trace-0.json.gz",    "trace-1.json.gz"};
  CHECK(files_in(here.folder() / "real/static") == files);
  CHECK(files_in(here.folder() / "real/hdp-balance") == files);

  const Outcome compared = here.run("compare real --out difference");
  CHECK(compared_rows(compared.out, "static") == 1);
  CHECK(compared_rows(compared.out, "hdp-balance") == 1);
  CHECK_THAT(compared.out, !Contains("unknown"));
  CHECK(files_in(here.folder() / "difference") ==
        std::vector<std::string>{"comparison.html", "comparison.json", "families.csv", "ranks.csv"});
  CHECK(here.read("difference/comparison.json") == here.run("compare real --format json").out);
  CHECK(here.read("difference/families.csv") == here.run("compare real --format csv").out);
  CHECK_THAT(here.read("difference/comparison.json"), Contains(R"("schema": "hdpsim.comparison/1")"));
}

TEST_CASE("kernels timed beside the runs tell a machine that is slower from a prediction that is wrong", "[compare]") {
  const ComparedWorkplace here;
  CHECK_THAT(here.run("execute fast.yaml --plan static --repeat 2 --pace --out real").out, Contains("step at pace"));
  CHECK_THAT(here.run("compare real").out, Contains("static at the pace of its kernels during the runs: "));
  CHECK_THAT(here.read("real/measured-0.jsonl"), Contains("\"at_pace_s\": "));
  CHECK_THAT(
      here.refusal(
          "execute fast.yaml --plan static --pace --set profile=bytescale-implied --set cluster.device=A100-80GB"),
      Contains("profile bytescale-implied has no kernels that were timed"));
}

TEST_CASE("both plans train the same model, though their runs interleave", "[compare]") {
  const ComparedWorkplace here;
  here.run("execute fast.yaml --plan static --plan hdp-balance --steps 2 --out both");
  here.run("execute fast.yaml --plan hdp-balance --steps 2 --out one");
  const auto losses = [&](const std::string& csv) {
    std::string found;
    const std::string text = here.read(csv);
    for (std::size_t line = text.find('\n') + 1; line < text.size(); line = text.find('\n', line) + 1) {
      found += text.substr(line, text.find(',', text.find(',', line) + 1) - line) + "\n";
    }
    return found;
  };
  REQUIRE(losses("one/steps.csv").size() > 10);
  CHECK(losses("both/hdp-balance/steps.csv") == losses("one/steps.csv"));
}

TEST_CASE("two files, or the files of one plan, are compared as a folder is", "[compare]") {
  const ComparedWorkplace here;
  here.run("execute fast.yaml --plan static --steps 2 --out real");
  CHECK(here.run("compare real/measured-*.jsonl real/predicted-*.jsonl").out == here.run("compare real").out);
  CHECK_THAT(here.run("compare real/predicted-1.jsonl real/measured-1.jsonl --format json").out,
             Contains("\"noise_floor\": null"));
}

TEST_CASE("timelines that cannot be joined say what differs", "[compare]") {
  const ComparedWorkplace here;
  here.run("execute fast.yaml --plan static --steps 2 --out real");
  here.run("execute fast.yaml --plan hdp-balance --out other");
  const auto refused = [&](const std::string& arguments, const std::string& reason) {
    CAPTURE(arguments);
    CHECK_THAT(here.refusal("compare " + arguments), Contains(reason));
  };
  refused("real/predicted-0.jsonl real/measured-1.jsonl", "its step is 1, that of the prediction 0");
  refused("real/predicted-0.jsonl other/measured-0.jsonl", "its plan is hdp-balance, that of the prediction static");
  refused("real/measured-0.jsonl real/predicted-0.jsonl", "this timeline is measured, not predicted");
  refused("real/predicted-0.jsonl", "one timeline has nothing to be compared with");
  refused("fast.yaml tiny.json", "tiny.json");
  refused("configs", "there are no timelines in this folder");
  refused("nowhere", "nowhere");
  fs::remove(here.folder() / "real/measured-1.jsonl");
  refused("real", "real/predicted-1.jsonl: error: step 1 of 'static' was not measured");
  fs::remove(here.folder() / "real/predicted-0.jsonl");
  refused("real", "real/measured-0.jsonl: error: there is no prediction of step 0 of 'static'");
}

TEST_CASE("a timeline that contradicts itself is refused with all that is wrong, never compared", "[compare]") {
  const ComparedWorkplace here;
  here.run("execute fast.yaml --plan static --out real");
  const std::string whole = here.read("real/measured-0.jsonl");
  std::vector<std::size_t> records;  // where instructions begin
  for (std::size_t at = whole.find("\n["); at != std::string::npos; at = whole.find("\n[", at + 1)) {
    records.push_back(at + 1);
  }
  REQUIRE(records.size() > 10);
  // The first one runs backwards, the last one is one of a rank that is not there.
  std::string damaged = whole;
  damaged.insert(records.back() + 1, 1, '9');
  const std::size_t times = damaged.find("\", ", damaged.find("\", \"", records[0]) + 1) + 3;
  const std::size_t end = damaged.find(',', times);
  damaged.replace(times, end - times, " 1000");
  here.write("real/measured-0.jsonl", damaged);
  const std::string outcome = here.refusal("compare real");
  const auto line_of = [&](std::size_t at) { return line_count(whole.substr(0, at)) + 1; };
  CHECK_THAT(outcome,
             Contains(fmt::format("real/measured-0.jsonl:{}:", line_of(records[0]))) && Contains("before it begins"));
  CHECK_THAT(outcome, Contains(fmt::format("real/measured-0.jsonl:{}:2: error", line_of(records.back()))) &&
                          Contains("there is no rank 9"));
  CHECK(here.hdpsim("compare real/predicted-0.jsonl real/measured-0.jsonl").code == 2);
}

TEST_CASE("what several plans or several runs cannot have is refused", "[compare]") {
  const ComparedWorkplace here;
  const auto refused = [&](const std::string& arguments, const std::string& reason) {
    CAPTURE(arguments);
    CHECK_THAT(here.refusal("execute fast.yaml " + arguments), Contains(reason));
  };
  refused("--plan static --plan static", "--plan names 'static' twice");
  refused("--plan static --repeat 2 --checkpoint kept", "--checkpoint belongs to one training");
  refused("--plan static --plan hdp-balance --checkpoint kept", "--checkpoint belongs to one training");
}

TEST_CASE("results of studies are compared plan by plan, with the keys that differ", "[compare]") {
  const ComparedWorkplace here;
  here.run("study fast.yaml --out one");
  here.run("study fast.yaml --set mesh.capacity=128 --out two");
  here.run("compare one two --out difference");
  CHECK(files_in(here.folder() / "difference") ==
        std::vector<std::string>{"results.csv", "results.html", "results.json"});
  CHECK(here.read("difference/results.csv") == here.run("compare one two --format csv").out);
  CHECK(here.read("difference/results.json") == here.run("compare one two --format json").out);
  const auto compared = nlohmann::json::parse(here.read("difference/results.json"));
  const auto first = nlohmann::json::parse(here.read("one/result.json"))["runs"];
  const auto second = nlohmann::json::parse(here.read("two/result.json"))["runs"];
  REQUIRE(compared["runs"].size() == 2 * first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto& row = compared["runs"][2 * i + 1];
    CHECK(row["plan"] == first[i]["plan"]);
    const double change =
        second[i]["step_time_s"]["mean"].get<double>() - first[i]["step_time_s"]["mean"].get<double>();
    CHECK(row["step_time_s_change"] == change);
    CHECK(row["attention_s"] == second[i]["breakdown_s"]["attention"]);
  }
  CHECK_THAT(here.run("compare one two").out, Contains("from one to two: mesh.capacity: 64 -> 128\n"));
}

TEST_CASE("what is compared with the result of a study is another one", "[compare]") {
  const ComparedWorkplace here;
  here.run("study fast.yaml --out one");
  CHECK_THAT(here.refusal("compare one"), Contains("one: error: one result has nothing to be compared with"));
  CHECK_THAT(here.refusal("compare one configs"), Contains("configs: error: this is no result of hdpsim study"));
  CHECK_THAT(here.refusal("compare one fast.yaml"), Contains("fast.yaml: error: this is no result of hdpsim study"));
  CHECK_THAT(here.refusal("compare configs traces"), Contains("configs: error: there is no result.json"));
  CHECK_THAT(here.refusal("compare one nowhere"), Contains("nowhere"));
  CHECK_THAT(here.refusal("compare one one --plan static"), Contains("are for a trace"));
  fs::create_directory(here.folder() / "other");
  here.write("other/result.json", R"({"schema": "hdpsim.result/2"})");
  CHECK_THAT(here.refusal("compare one other"),
             Contains("other/result.json: error: this has the schema hdpsim.result/2"));
}

}  // namespace
}  // namespace hdpsim::spec
