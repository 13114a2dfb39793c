#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/small_validation_set.h"

namespace hdpsim::spec {
namespace {

using test::small_validation_set;

TEST_CASE("validate lays predictions beside what was published, the same whatever the number of jobs", "[validate]") {
  const Workplace here;
  here.write("small.yaml", small_validation_set);
  const Outcome one = here.run("validate ./small.yaml --jobs 1 --format json --out results");
  CHECK(one.out == here.hdpsim("validate ./small.yaml --jobs 3 --format json").out);
  CHECK(files_in(here.folder() / "results") == std::vector<std::string>{"journal.jsonl", "sets.csv", "trust.csv",
                                                                        "trust.yaml", "validation.csv",
                                                                        "validation.html", "validation.json"});
  CHECK(here.read("results/validation.json") == one.out);
  const auto json = nlohmann::json::parse(one.out);
  CHECK(json.at("schema") == "hdpsim.validation/1");
  const std::vector<std::string> units = {"s", "s", "tokens/s"};
  REQUIRE(json.at("rows").size() == units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto& row = json.at("rows").at(i);
    CHECK(row.at("set") == "small");
    CHECK(row.at("predicted") > 0);
    CHECK(row.at("unit") == units[i]);
  }
  // Two plans of one job have one pair, which is in the published order or not.
  const double tau = json.at("sets").at(0).at("kendall_tau");
  CHECK((tau == 1 || tau == -1));
}

TEST_CASE("each case of a set is written as a study, which gives what was predicted", "[validate]") {
  const Workplace here;
  here.write("small.yaml", small_validation_set);
  const auto json = nlohmann::json::parse(here.hdpsim("validate ./small.yaml --format json --out results").out);
  CHECK(files_in(here.folder() / "results/cases") ==
        std::vector<std::string>{"small-1-tp_1_dp_8_micro_batch_2.yaml", "small-2-tp_2_dp_4_micro_batch_1.yaml"});
  const auto run =
      nlohmann::json::parse(here.run("study results/cases/small-2-tp_2_dp_4_micro_batch_1.yaml --format json").out)
          .at("runs")
          .at(0);
  CHECK(run.at("step_time_s").at("mean") == json.at("rows").at(1).at("predicted"));
}

// A log of Megatron-LM: its arguments, and steps of which the first are warm-up.
std::string megatron_log() {
  std::string log = "------------------------ arguments ------------------------\n";
  for (const char* line :
       {"add_bias_linear False", "bf16 True", "context_parallel_size 1", "ffn_hidden_size 1024", "global_batch_size 16",
        "hidden_size 256", "micro_batch_size 1", "normalization RMSNorm", "num_attention_heads 4", "num_layers 2",
        "padded_vocab_size 32000", "pipeline_model_parallel_size 1", "position_embedding_type rope", "seq_length 2048",
        "swiglu True", "tensor_model_parallel_size 1", "untie_embeddings_and_output_weights True", "world_size 8"}) {
    const std::string text = line;
    const std::size_t blank = text.find(' ');
    log += "  " + text.substr(0, blank) + " " + std::string(48 - blank, '.') + text.substr(blank) + "\n";
  }
  log += "-------------------- end of arguments ---------------------\n";
  for (const auto& [step, milliseconds] : {std::pair(1, 900.), {2, 60.}, {3, 40.}, {4, 40.}, {5, 44.}, {6, 40.}}) {
    log += "iteration " + std::to_string(step) +
           "/ 9 | elapsed time per iteration (ms): " + std::to_string(milliseconds) + " | global batch size: 16 |\n";
  }
  return log;
}

TEST_CASE("steps of a log that lists its arguments are compared with the prediction of that job, and fitted",
          "[validate]") {
  const Workplace here;
  here.write("run.log", megatron_log());
  const Outcome compared = here.run("validate run.log --cluster h100-rail --format json");
  const auto json = nlohmann::json::parse(compared.out);
  REQUIRE(json.at("rows").size() == 1);
  CHECK(json.at("rows").at(0).at("published") == 0.04);
  CHECK(json.at("rows").at(0).at("predicted") > 0);
  CHECK_THAT(compared.err, Catch::Contains("run.log: 4 steps, step_time_s of 0.04 in the median") &&
                               Catch::Contains("left out: 2 of warm-up"));
  const Outcome fitted =
      here.run("calibrate --from-steps run.log --cluster h100-rail --fit per_step --format json --out fitted.yaml");
  CHECK(nlohmann::json::parse(fitted.out).at("rows").size() == 1);
  CHECK(fs::exists(here.folder() / "fitted.yaml"));
  // The same job, told by the log of another run.
  here.write("titan.log", "step: 2  tps: 50,000\nstep: 3  tps: 51,000\n");
  CHECK(nlohmann::json::parse(here.run("validate titan.log --like run.log --format json").out)
            .at("rows")
            .at(0)
            .at("published") == 50500);
  CHECK_THAT(here.refusal("validate titan.log"), Catch::Contains("steps alone say nothing of the cluster"));
}

TEST_CASE("validate refuses sets that are not there and tells what is wrong with one", "[validate]") {
  const Workplace here;
  CHECK_THAT(here.refusal("validate sc22"), Catch::Contains("did you mean 'sc21'?"));
  CHECK_THAT(here.refusal("validate korthikanti --without magic"),
             Catch::Contains("--without:1:1: error: there is no mechanism 'magic'"));
  here.write("wrong.yaml", "name: wrong\nrows: []\n");
  const Outcome wrong = here.hdpsim("validate ./wrong.yaml --out results");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("wrong.yaml:1:1: error: a validation set needs 'about'") != std::string::npos);
  CHECK(wrong.err.find("wrong.yaml:1:1: error: a validation set needs 'study'") != std::string::npos);
  CHECK_FALSE(fs::exists(here.folder() / "results"));
}

}  // namespace
}  // namespace hdpsim::spec
