#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/sample_text.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

constexpr char study_of_samples[] =
    "name: small\ncluster: {preset: h100-rail, gpus: 8}\nmodel: {preset: llama-7b}\n"
    "profile: h100-published\ndata: {lengths: {preset: github}, context: 8Ki, tokens_per_step: 64Ki, steps: 1}\n"
    "mesh: {capacity: 8Ki}\nplans: [static: {cp: 1}, hdp-naive]\n";

TEST_CASE("the example of samples follows known laws", "[calibrate]") {
  const std::string text = test::samples_of_laws();
  CHECK(text == golden("../../calib/traces/example.samples.jsonl", text));
}

TEST_CASE("samples of another program become a profile that studies use", "[calibrate]") {
  const Workplace here;
  here.write("all.jsonl", test::samples_of_laws());
  here.write("study.yaml", study_of_samples);
  const Outcome outcome = here.run("calibrate --from-samples all.jsonl --like h100-published --out out/mine.yaml");
  for (const char* text :
       {"held-out error", "attention                24           0.00 %", "messages",
        "measured through PyTorch: attention by flash-attn 2.8.1", "kept of h100-published: ", "host_copies"}) {
    CHECK_THAT(outcome.out, Contains(text));
  }
  CHECK_THAT(outcome.err, Contains("the profile is in out/mine.yaml"));
  CHECK_THAT(here.read("out/mine.yaml"),
             Contains("label: measured") && Contains("measured through PyTorch") && Contains("host_issue"));
  here.run("check out/mine.yaml");
  CHECK_THAT(here.run("check all.jsonl").out, Contains("measurements of kernels of a H100-80GB"));
  CHECK_THAT(here.run("calibrate --report out/mine.yaml").out, Contains("attention"));
  const auto result = nlohmann::json::parse(here.run("study study.yaml --set profile=out/mine.yaml --format json").out);
  CHECK(result.at("runs").at(0).at("evidence").at("interpolated") > 0);

  // In parts, as ranks or runs write them; of a cluster; without another profile, whose parts are then missing.
  const std::string header = test::sample_header(test::sheet_of_samples);
  here.write("kernels.jsonl", header + test::attention_lines({}) + test::kernel_lines({}));
  here.write("messages.jsonl", header + test::message_lines({}));
  here.run("calibrate --from-samples kernels.jsonl messages.jsonl --like h100-rail --out parts --name two");
  const Outcome alone = here.run("calibrate --from-samples messages.jsonl kernels.jsonl --out alone --name one");
  CHECK_THAT(alone.err, Contains("what was not measured is left out"));
  CHECK_THAT(here.read("alone/one.yaml"), !Contains("host_copies"));
  here.run("study study.yaml --set profile=alone/one.yaml");
  here.run("check parts/two.yaml");
}

TEST_CASE("wrong samples and options end with exit code 2 and say what is wrong", "[calibrate]") {
  const Workplace here;
  const std::string all = test::samples_of_laws();
  here.write("all.jsonl", all);
  here.write("cut.jsonl", all.substr(0, all.size() - 20));
  here.write("bare.jsonl", test::sample_header("") + test::kernel_lines({}));
  here.write("other.jsonl", "{\"steps\": []}\n");
  std::string of_h200 = all;
  of_h200.replace(of_h200.find("H100-80GB"), 9, "H200-141GB");
  here.write("h200.jsonl", of_h200);
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    CHECK_THAT(here.refusal("calibrate " + arguments), Contains(text));
    CHECK_FALSE(fs::exists(here.folder() / "t.yaml"));
  };
  const auto lines = std::count(all.begin(), all.end(), '\n');
  refused("--from-samples cut.jsonl --out t.yaml", fmt::format("cut.jsonl:{}:", lines));
  refused("--from-samples none.jsonl --out t.yaml", "none.jsonl");
  refused("--from-samples other.jsonl all.jsonl --out t.yaml", "these are no samples of kernels");
  refused("--from-samples all.jsonl h200.jsonl --out t.yaml", "device: H200-141GB here, H100-80GB in all.jsonl:1");
  refused("--from-samples all.jsonl --out t.yaml --name t", "name the profile twice");
  refused("--from-samples all.jsonl --like h100-publshed", "did you mean 'h100-published'?");
  refused("--from-samples all.jsonl --from-steps sc21", "--from-s");
  refused("--from-samples all.jsonl --quick", "--quick");
  refused("--from-samples all.jsonl --format json", "--format");
  here.run("calibrate --from-samples bare.jsonl --like h100-published --out t.yaml");
  CHECK_THAT(here.refusal("calibrate --check t.yaml"), Contains("are not this program's"));
}

}  // namespace
}  // namespace hdpsim::spec
