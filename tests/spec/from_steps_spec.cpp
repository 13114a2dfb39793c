#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "sim/base/atomic_file.h"
#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

// What all steps of the log have in common, as a user would say it.
constexpr char mine[] = R"(name: mine
about: small GPTs on a node
source: our logs
study:
  cluster: {preset: dgx-a100-superpod}
  model: {preset: gpt-1.7b, n_positions: 1024}
  profile: a100-sxm-published
  framework: {preset: megatron-lm-2021}
  plans: [static]
columns: [gpus_per_node, tp, dp, micro_batch, global_batch, sequence, step_time_s]
rows:
  - [2, 1, 2, 1, 4, 1Ki, 1]
)";

// Two steps of each of six jobs.
constexpr char steps[] = R"(model.n_layer,gpus_per_node,tp,dp,micro_batch,global_batch,sequence,step_time_s
2,2,1,2,1,4,1Ki,0.130
2,2,1,2,1,4,1Ki,0.131
4,2,1,2,1,4,1Ki,0.231
2,2,1,2,8,32,1Ki,0.301
4,2,1,2,8,32,1Ki,0.502
2,2,2,1,8,16,1Ki,0.190
2,4,4,1,8,16,1Ki,0.122
)";

nlohmann::json result_of(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return nlohmann::json::parse(outcome.out);
}

TEST_CASE("a profile is fitted to the steps of a log, and studies use it", "[calibrate]") {
  const Workplace here;
  here.write("mine.yaml", mine);
  here.write("steps.csv", steps);
  const std::string fit = "calibrate --from-steps steps.csv --like ./mine.yaml --fit gemm,host_issue,per_step ";
  const Outcome outcome = here.hdpsim(fit + "--format json --out profiles/fitted.yaml --jobs 1");
  const nlohmann::json result = result_of(outcome);
  CHECK(result.at("schema") == "hdpsim.fit/1");
  REQUIRE(result.at("parameters").size() == 3);
  for (const auto& parameter : result.at("parameters")) {
    CHECK(parameter.at("p5") <= parameter.at("value"));
    CHECK(parameter.at("value") <= parameter.at("p95"));
  }
  CHECK(result.at("rows").size() == 6);  // the first two lines are steps of one job
  CHECK(result.at("errors").at("after").at("mean_abs_error") < result.at("errors").at("before").at("mean_abs_error"));

  // The same whatever the number of jobs, and as a table and CSV.
  CHECK(here.hdpsim(fit + "--format json --jobs 3").out == outcome.out);
  CHECK_THAT(here.hdpsim(fit).out, Catch::Contains("90 % interval") && Catch::Contains("held out by"));
  CHECK_THAT(here.hdpsim(fit + "--format csv").out, Catch::StartsWith("case,quantity,unit,group,measured,before,"));

  // Its profile says what it was fitted to.
  const std::string profile = here.read("profiles/fitted.yaml");
  CHECK_THAT(profile, Catch::Contains("label: fitted") && Catch::Contains("start: \"a100-sxm-published (published)\""));
  here.run("check profiles/fitted.yaml");
  here.run("validate ./mine.yaml --set profile=profiles/fitted.yaml --format csv");

  // It replaces nothing that it has read.
  CHECK(here.hdpsim("calibrate --from-steps ./mine.yaml --fit gemm --out ./mine.yaml").code == 2);
  CHECK(here.read("mine.yaml") == mine);
}

// Runs that nobody has measured: on one node, and on two.
constexpr char candidates[] = R"(model.n_layer,gpus_per_node,tp,dp,micro_batch,global_batch,sequence
3,2,1,2,1,4,1Ki
2,2,1,4,8,32,1Ki
)";

constexpr char asked[] = R"(name: asked
cluster: {preset: dgx-a100-superpod, gpus: 8, node: {gpus: 2, nics: {count: 2}}}
model: {preset: gpt-1.7b, n_positions: 1024, n_layer: 2}
profile: a100-sxm-published
framework: {preset: megatron-lm-2021}
data: {lengths: {fixed: 1024}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}
mesh: {tp: 1, pp: 1, hdp: 8, capacity: 8Ki}
plans: [static]
)";

// The same jobs with the steps that the starting profile predicts, so that a fit has nothing to explain.
std::string predicted_steps(const Workplace& here) {
  const nlohmann::json rows =
      result_of(here.hdpsim("calibrate --from-steps steps.csv --like ./mine.yaml --fit gemm --format json")).at("rows");
  std::istringstream lines(steps);
  std::string line;
  std::getline(lines, line);
  std::string text = line + "\n";
  std::string known;
  std::size_t row = 0;
  while (std::getline(lines, line)) {
    const std::string job = line.substr(0, line.rfind(','));
    if (job == std::exchange(known, job)) continue;
    text += fmt::format("{},{}\n", job, rows.at(row++).at("before").get<double>());
  }
  return text;
}

TEST_CASE("of runs that could be measured those are named that tell most", "[calibrate]") {
  const Workplace here;
  here.write("mine.yaml", mine);
  here.write("steps.csv", steps);
  here.write("predicted.csv", predicted_steps(here));
  here.write("candidates.csv", candidates);
  here.write("asked.yaml", asked);
  const std::string fit =
      "calibrate --from-steps predicted.csv --like ./mine.yaml --fit gemm,host_issue,link_between_nodes "
      "--next candidates.csv ";
  const nlohmann::json next = result_of(here.hdpsim(fit + "--for asked.yaml --format json")).at("next");
  CHECK(next.at("study") == "asked.yaml");
  REQUIRE(next.at("runs").size() == 2);
  CHECK(next.at("runs")[0].at("place") == 1);
  CHECK(next.at("runs")[0].at("case") == "n_layer 2 dp 4 micro_batch 8 global_batch 32");
  CHECK(next.at("runs")[0].at("parameter") == "link_between_nodes");
  REQUIRE(next.at("steps").size() == 1);
  CHECK(next.at("steps")[0].at("now_p95") > next.at("steps")[0].at("after_first_p95"));

  CHECK_THAT(here.hdpsim(fit + "--for asked.yaml").out,
             Catch::Contains("measure n_layer 2 dp 4 micro_batch 8 global_batch 32 first") &&
                 Catch::Contains("what each run of candidates.csv would tell of the step time of asked.yaml"));
  CHECK_THAT(here.hdpsim(fit).out, Catch::Contains("would tell of the parameters"));
}

// What all steps of a log have in common: the whole job.
constexpr char job_of_log[] = R"(name: mine
about: a small GPT on a node
source: our log
study:
  cluster: {preset: dgx-a100-superpod, gpus: 2, node: {gpus: 2, nics: {count: 2}}}
  model: {preset: gpt-1.7b, n_positions: 1024, n_layer: 2}
  profile: a100-sxm-published
  framework: {preset: megatron-lm-2021}
  data: {lengths: {fixed: 1Ki}, context: 1Ki, tokens_per_step: 4Ki, steps: 1}
  mesh: {tp: 1, capacity: 1Ki}
  plans: [static]
)";

TEST_CASE("a framework's log is fitted to, and what its steps leave open reaches the intervals of a study",
          "[calibrate]") {
  const Workplace here;
  here.write("job.yaml", job_of_log);
  here.write("run.log",
             "iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | global batch size: 4 |\n"
             "iteration 2/ 9 | elapsed time per iteration (ms): 130.0 | global batch size: 4 |\n"
             "iteration 3/ 9 | elapsed time per iteration (ms): 131.0 | global batch size: 4 |\n");
  CHECK_THAT(here.run("calibrate --from-steps run.log --like ./job.yaml --out fitted.yaml").out,
             Catch::Contains("mine: 1 rows") && Catch::Contains("the rows determine "));
  here.write("asked.yaml", asked);
  const std::string study = "study asked.yaml --set 'uncertainty={}' --format json";
  const auto interval = [&](const std::string& more) {
    return result_of(here.hdpsim(study + more)).at("runs").at(0).at("uncertainty");
  };
  const nlohmann::json before = interval("");
  const nlohmann::json after = interval(" --set profile=fitted.yaml");
  CHECK(before.at("step_time_s").at("p5") == before.at("step_time_s").at("p95"));
  CHECK(after.at("step_time_s").at("p5") < after.at("step_time_s").at("p95"));
  const auto names = [](const nlohmann::json& unknown, const std::string& name) {
    return std::find(unknown.begin(), unknown.end(), name) != unknown.end();
  };
  CHECK(names(before.at("unknown"), "gemm"));
  CHECK_FALSE(names(after.at("unknown"), "gemm"));
  CHECK(after.at("variance").at(0).at("source") == "fitted parameters");
}

TEST_CASE("of two fits that would write one file the second is refused", "[calibrate]") {
  const Workplace here;
  here.write("mine.yaml", mine);
  here.write("steps.csv", steps);
  const std::string fit = "calibrate --from-steps steps.csv --like ./mine.yaml --fit gemm --out same.yaml";
  const FileClaim other(here.folder() / "same.yaml", "hdpsim calibrate of another");
  CHECK_THAT(here.machine_refusal(fit),
             Catch::Contains("it is being written by process ") && Catch::Contains("of another"));
  CHECK_FALSE(fs::exists(here.folder() / "same.yaml"));
}

TEST_CASE("a fit that stays far from its rows says so", "[calibrate]") {
  const Workplace here;
  here.write("mine.yaml", mine);
  here.write("ms.csv", "tp,dp,micro_batch,global_batch,sequence,gpus_per_node,step_time_s\n1,2,1,4,1Ki,2,130\n");
  CHECK_THAT(here.run("calibrate --from-steps ms.csv --like ./mine.yaml --fit gemm").err,
             Catch::Contains("warning: the fitted profile misses 1 of 1 rows by more than a factor of 2"));
  here.write("steps.csv", steps);
  CHECK_THAT(here.run("calibrate --from-steps steps.csv --like ./mine.yaml --fit gemm,host_issue").err,
             !Catch::Contains("warning:"));
}

TEST_CASE("fits to steps that cannot be are refused with a fix, and nothing is written", "[calibrate]") {
  const Workplace here;
  here.write("mine.yaml", mine);
  here.write("steps.csv", steps);
  here.write("notes.txt", "it was fast\n");
  here.write("run.log", "step: 10  loss: 6.1  tps: 5,856\n");
  struct Case {
    const char* arguments;
    const char* word;
  };
  for (const auto& [arguments, word] : std::initializer_list<Case>{
           {"steps.csv", "--like"},
           {"steps.csv --like ./mine.yaml --fit gem", "did you mean 'gemm'?"},
           {"notes.txt --like ./mine.yaml", "this is no log of a framework that is known, and no table of steps"},
           {"run.log", "name with --like what does: a validation set, or a job that `hdpsim import` reads"},
           {"sc22", "did you mean 'sc21'?"},
           {"steps.csv --like ./mine.yaml --rows nonsense", "no row of mine has 'nonsense'"},
           {"steps.csv --like ./mine.yaml --try training.recompute", "write --try training.recompute=none,full"},
           {"steps.csv --like ./mine.yaml --holdout 2", "--holdout"},
           {"steps.csv --like ./mine.yaml --holdout nan", "--holdout"},
           {"steps.csv --like ./mine.yaml --quick", "--quick"},
           {"./mine.yaml ./mine.yaml --fit gemm", "two of the sets are called mine"},
           {"./mine.yaml sc22 --fit gemm", "did you mean 'sc21'?"},
           {"steps.csv --like ./mine.yaml --fit gemm --next nothing.csv", "nothing.csv"},
           {"steps.csv --like ./mine.yaml --fit gemm --for asked.yaml", "--next"},
           {"steps.csv --like ./mine.yaml --next ./mine.yaml --try training.recompute=none,full", "--try"},
       }) {
    CAPTURE(arguments);
    const std::string outcome = here.refusal(fmt::format("calibrate --from-steps {} --out refused.yaml", arguments));
    CHECK(outcome.find(word) != std::string::npos);
    CHECK_FALSE(fs::exists(here.folder() / "refused.yaml"));
  }
}

}  // namespace
}  // namespace hdpsim::spec
