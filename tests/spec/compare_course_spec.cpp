#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr char study_of_course[] =
    "name: fast\ncluster: {preset: laptop-cpu, gpus: 4, node: {gpus: 4}}\nmodel: {hf_config: tiny.json}\n"
    "profile: epyc-cpu\ndata: {lengths: {preset: github}, context: 128, tokens_per_step: 512, steps: 2}\n"
    "mesh: {capacity: 64}\nplans: [hdp-balance, static: {cp: 2}]\n";

/// A workplace with a study, its plan of step 1, and traces of CPUs of a training that ran it.
struct TracedCourseWorkplace : Workplace {
  TracedCourseWorkplace() {
    write(
        "tiny.json",
        R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,)"
        R"( "num_attention_heads": 1, "vocab_size": 64})");
    write("study.yaml", study_of_course);
    run("plan study.yaml --plan hdp-balance --step 1 --out plan.json");
    plan = json::parse(read("plan.json"));
    for (int rank = 0; rank < 4; ++rank) write(trace_name(rank), trace_of(rank));
  }

  static std::string trace_name(int rank) { return fmt::format("rank{}.json", rank); }

  static std::string event(const std::string& category, const std::string& name, double begin, double took) {
    return fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{}}}})", category,
        name, begin, took);
  }

  /// Every pass takes 10 ms, of which 4 are a product; behind all of them come 5 ms of a reduction.
  [[nodiscard]] std::string trace_of(int rank) const {
    std::string events;
    double now = 0;
    const auto add = [&](const std::string& category, const std::string& name, double begin, double took) {
      events += event(category, name, begin, took) + ",\n";
    };
    for (const json& micro_batch : plan.at("schedule").at(rank)) {
      for (const char* pass : {"forward", "backward"}) {
        add("user_annotation", fmt::format("hdpsim:1/{}/{}", micro_batch.get<int>(), pass), now, 10'000);
        add("cpu_op", "aten::mm", now + 1000, 4000);
        now += 10'000;
      }
    }
    add("user_annotation", "hdpsim:1/reduce", now, 5000);
    add("cpu_op", "gloo:all_reduce", now, 5000);
    return "{\"traceEvents\": [\n" + events +
           event("user_annotation", fmt::format("hdpsim:1/rank/{}", rank), 0, now + 5000) + "]}\n";
  }

  [[nodiscard]] std::size_t passes() const {
    std::size_t count = 0;
    for (const json& schedule : plan.at("schedule")) count += 2 * schedule.size();
    return count;
  }

  json plan;
};

double sum_of_side(const json& activities, const std::string& side) {
  double sum = 0;
  for (const json& activity : activities) sum += activity.at(side + "_s").get<double>();
  return sum;
}

TEST_CASE("traces with ranges are laid beside the plan that they ran, pass by pass", "[compare]") {
  const TracedCourseWorkplace here;
  const std::string all = "compare rank0.json rank1.json rank2.json rank3.json study.yaml --plan plan.json";
  const Outcome outcome = here.run(all);
  for (const char* text : {"plan hdp-balance, step 1, 4 traces of CPUs", "messages and waiting for ranks",
                           "differs most in", "micro-batch 0 forward", "The measured step takes"}) {
    CHECK_THAT(outcome.out, Contains(text));
  }
  CHECK_THAT(outcome.out,
             Contains("4 of the traces have no optimizer behind the step") && !Contains("another cluster"));

  const json result = json::parse(here.run(all + " --format json").out);
  CHECK(result.at("schema") == "hdpsim.trace_comparison/2");
  CHECK(result.at("step") == 1);
  CHECK(result.at("traces") == 4);
  CHECK(result.at("passes").size() == here.passes());
  for (const json& pass : result.at("passes")) {
    CHECK(pass.at("seconds").at("measured").get<double>() == Approx(0.010));
    CHECK(pass.at("activities").at(1).at("measured_s").get<double>() == Approx(0.004));
    CHECK(pass.at("seconds").at("simulated").get<double>() > 0);
  }
  for (const json& rank : result.at("ranks")) {
    const auto micro_batches = here.plan.at("schedule").at(rank.at("rank").get<std::size_t>()).size();
    const double steps = rank.at("step_time_s").at("measured");
    CHECK(steps == Approx(0.020 * static_cast<double>(micro_batches) + 0.005));
    CHECK(rank.at("kernels_s").at("measured").get<double>() == Approx(0.008 * static_cast<double>(micro_batches)));
    CHECK(sum_of_side(rank.at("between_passes"), "measured") == Approx(0.005));
    for (const std::string side : {"measured", "simulated"}) {
      CHECK(sum_of_side(rank.at("activities"), side) == Approx(rank.at("step_time_s").at(side).get<double>()));
    }
    // All simulated ranks begin and end the step together, and passes leave no less than nothing of any activity.
    CHECK(rank.at("step_time_s").at("simulated").get<double>() ==
          Approx(result.at("step_time_s").at("simulated").get<double>()));
    for (const json& activity : rank.at("between_passes")) CHECK(activity.at("simulated_s").get<double>() > -1e-6);
  }
  // A row an activity of each pass, of what is between them, and of the step, and the head.
  const std::string csv = here.run(all + " --format csv").out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == static_cast<std::ptrdiff_t>(1 + 5 * (here.passes() + 2 * 4)));

  // The study plans the same step 1 itself.
  const std::string by_study = "compare rank0.json rank1.json rank2.json rank3.json study.yaml --plan hdp-balance";
  CHECK(json::parse(here.run(by_study + " --format json").out).at("ranks") == result.at("ranks"));
  CHECK_THAT(here.run("compare rank2.json study.yaml --plan plan.json").out,
             Contains("3 of the 4 ranks of the plan were not measured: 0, 1, 3."));
}

TEST_CASE("traces of another plan, rank or step are refused with all that differs", "[compare]") {
  const TracedCourseWorkplace here;
  std::string other = here.read("rank1.json");
  for (std::size_t at = 0; (at = other.find("hdpsim:1/", at)) != std::string::npos; ++at) other[at + 7] = '6';
  here.write("step6.json", other);
  here.write("rank9.json", here.trace_of(0).replace(here.trace_of(0).find("/rank/0"), 7, "/rank/9"));
  const std::string refusal = here.refusal("compare rank0.json step6.json rank9.json study.yaml --plan plan.json");
  CHECK_THAT(refusal, Contains("step6.json: error: step 1 is not in this trace, which has 6") &&
                          Contains("rank9.json: error: it is of rank 9, the plan has ranks 0 to 3"));
  TracedCourseWorkplace another;
  another.plan.at("schedule").at(0).front() = 77;
  here.write("another.json", another.trace_of(0));
  CHECK_THAT(here.refusal("compare another.json study.yaml --plan plan.json"),
             Contains("rank 0 ran micro-batch 77 forward, which the plan does not give it") &&
                 Contains("rank 0 did not run micro-batch 0 backward, which the plan gives it"));
  CHECK_THAT(
      here.refusal("compare rank0.json study.yaml --plan plan.json --set cluster.gpus=2 --set cluster.node.gpus=2"),
      Contains("plan.json: error: the plan is for 4 HDP ranks, the study has 2"));
  CHECK_THAT(here.refusal("compare step6.json study.yaml"),
             Contains("the traces are of step 6, the study has steps 0 to 1"));
  CHECK_THAT(here.refusal("compare rank0.json study.yaml --plan plan.json --step 0"), Contains("step 0 is not in"));
  CHECK_THAT(here.refusal("compare rank0.json study.yaml --plan none.json"), Contains("none.json"));
  CHECK_THAT(here.refusal("compare rank0.json study.yaml --out there"), Contains("--out is for timelines"));
  CHECK_THAT(here.refusal("calibrate --from-trace rank0.json --like epyc-cpu"), Contains("no kernels of a GPU"));
}

TEST_CASE("a trace of CPUs without ranges has its totals", "[compare]") {
  const TracedCourseWorkplace here;
  here.write("plain.json", "{\"traceEvents\": [" + TracedCourseWorkplace::event("cpu_op", "aten::mm", 0, 3000) + "," +
                               TracedCourseWorkplace::event("cpu_op", "gloo:all_reduce", 3000, 1000) + "," +
                               TracedCourseWorkplace::event("cpu_op", "aten::add", 5000, 1000) + "]}\n");
  const json result = json::parse(here.run("compare plain.json study.yaml --format json").out);
  CHECK(result.at("schema") == "hdpsim.trace_comparison/1");
  CHECK(result.at("step_time_s").at("measured").get<double>() == Approx(0.006));
  CHECK(result.at("activities").at(1).at("measured_s").get<double>() == Approx(0.004));  // products and the rest
  CHECK(result.at("activities").at(2).at("measured_s").get<double>() == Approx(0.001));  // messages
  CHECK_THAT(here.refusal("compare plain.json study.yaml --step 1"), Contains("no trace has ranges"));
}

TEST_CASE("a measured timeline without instructions compares by rank and micro-batch", "[compare]") {
  const TracedCourseWorkplace here;
  here.run("execute study.yaml --plan static --out real");
  std::string coarse;
  const std::string measured = here.read("real/measured-0.jsonl");
  for (std::size_t begin = 0; begin < measured.size();) {
    const std::size_t end = measured.find('\n', begin) + 1;
    if (measured[begin] != '[') coarse += measured.substr(begin, end - begin);
    begin = end;
  }
  const std::size_t count = coarse.find("\"instructions\": ") + 16;
  coarse.replace(count, coarse.find('}', count) - count, "0");
  here.write("coarse.jsonl", coarse);
  const Outcome outcome = here.run("compare real/predicted-0.jsonl coarse.jsonl");
  CHECK_THAT(outcome.out, Contains("a timeline (coarse.jsonl)") && Contains("micro-batch") && Contains("end measured"));
  const json result = json::parse(here.run("compare real/predicted-0.jsonl coarse.jsonl --format json").out);
  const json fine = json::parse(here.run("compare real/predicted-0.jsonl real/measured-0.jsonl --format json").out);
  CHECK(result.at("step_time_s").at("measured").get<double>() ==
        Approx(fine.at("step_time_s").at("measured").get<double>()));
  CHECK(result.at("step_time_s").at("simulated").get<double>() ==
        Approx(fine.at("step_time_s").at("predicted").get<double>()));
  CHECK(result.at("ranks").size() == 4);
  CHECK_FALSE(result.at("micro_batches").empty());
  CHECK_THAT(here.refusal("compare real/predicted-0.jsonl coarse.jsonl --out there"), Contains("--out"));
  CHECK_THAT(here.refusal("compare coarse.jsonl real/predicted-0.jsonl"), Contains("the prediction comes first"));
}

}  // namespace
}  // namespace hdpsim::spec
