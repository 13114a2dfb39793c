#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

Outcome calibrate_briefly(const Workplace& here, const std::string& arguments) {
  return here.hdpsim(fmt::format("calibrate --backend cpu --time-limit {} {}", brief_time_limit(), arguments));
}

constexpr char study_on_it[] =
    "name: on-it\ncluster: {preset: laptop-cpu, gpus: 4}\nmodel: {preset: gpt-1.7b}\nprofile: profiles/here.yaml\n"
    "data: {lengths: {preset: github}, context: 2Ki, tokens_per_step: 8Ki, steps: 1}\nmesh: {tp: 1, capacity: 1Ki}\n"
    "plans: [static, hdp-balance]\n";

TEST_CASE("a calibration of this CPU writes a profile that studies and reports can use", "[calibrate]") {
  const Workplace here;
  const Outcome outcome = calibrate_briefly(here, "--out profiles --name here");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.ends_with("profiles/here.yaml\n"));
  CHECK_THAT(outcome.out, Catch::Contains("held-out error") && Catch::Contains("noise floor"));
  CHECK((files_in(here.folder() / "profiles") == std::vector<std::string>{"here.samples.jsonl", "here.yaml"}));

  const std::string profile = here.read("profiles/here.yaml");
  CHECK_THAT(profile, Catch::Contains("label: measured") && Catch::Contains("device: \"CPU\"") &&
                          Catch::Contains("--time-limit"));
  here.run("check profiles/here.yaml");

  here.write("study.yaml", study_on_it);
  CHECK_THAT(here.run("study study.yaml").out, Catch::Contains("hdp-balance"));

  CHECK_THAT(here.run("calibrate --report profiles/here.yaml").out, Catch::Contains("held out"));
}

TEST_CASE("a calibration that Ctrl-C stops keeps what it has measured, and --resume goes on with it", "[calibrate]") {
  const Workplace here;
  const std::string calibrate =
      fmt::format("calibrate --backend cpu --time-limit {} --out it.yaml", brief_time_limit());
  const fs::path samples = here.folder() / "it.samples.jsonl";
  Background calibration(here, calibrate);
  calibration.await([&] { return line_count(test::text_of(samples)) >= 5; });
  calibration.send(SIGINT);
  REQUIRE(calibration.wait() == 128 + SIGINT);
  CHECK_FALSE(fs::exists(here.folder() / "it.yaml"));
  const std::string kept = test::text_of(samples);
  CHECK(line_count(kept) >= 5);

  here.run(calibrate + " --resume");
  CHECK(fs::exists(here.folder() / "it.yaml"));
  const std::string all = test::text_of(samples);
  CHECK((all.starts_with(kept)));
  CHECK(line_count(all) > line_count(kept));

  const Outcome other = here.hdpsim("calibrate --backend cpu --quick --out it.yaml --resume");
  CHECK(other.code == 2);
  CHECK_THAT(other.err,
             Catch::Contains("it.samples.jsonl:1:1: error: this journal is of another calibration: 'plan: "));
  CHECK((test::text_of(samples) == all));
}

TEST_CASE("what nccl-tests has measured becomes the links of a shipped profile, without a device", "[calibrate]") {
  const Workplace here;
  std::string text =
      " 0: # Collective test starting: all_reduce_perf\n"
      " 0: #  Rank  0 Group  0 Pid 1 on node-1 device  0 [0000:0f:00] NVIDIA H100\n"
      " 0: #  Rank  1 Group  0 Pid 2 on node-2 device  0 [0000:0f:00] NVIDIA H100\n"
      " 0: #       size         count      type   redop    root     time   algbw   busbw  #wrong\n";
  for (std::int64_t bytes = 1 << 20; bytes <= (1 << 30); bytes *= 2) {
    text += fmt::format(" 0: {} 1 float sum -1 {:.2f} 0 0 0\n", bytes, 20 + static_cast<double>(bytes) / 40e3);
  }
  here.write("nccl.txt", text);
  const Outcome outcome = here.run("calibrate --nccl-tests nccl.txt --like h100-published --out mine.yaml");
  CHECK_THAT(outcome.out, Catch::Contains("from nccl-tests") && Catch::Contains("network all_reduce") &&
                              Catch::Contains("kept of h100-published (published)"));
  CHECK_THAT(outcome.err, Catch::Contains("the profile is in mine.yaml"));
  here.run("check mine.yaml");
  here.run("calibrate --nccl-tests nccl.txt --like h100-rail --out mine.yaml");
  CHECK_THAT(here.refusal("calibrate --nccl-tests nccl.txt --like h100-published --quick"),
             Catch::Contains("--nccl-tests with --like measures nothing"));
}

TEST_CASE("a check says of every family that can be timed whether the profile still holds", "[calibrate]") {
  // What it says depends on the machine and the moment; its form does not.
  const Workplace here;
  CHECK_THAT(here.run("calibrate --check epyc-cpu --time-limit 1s").out,
             Catch::StartsWith("epyc-cpu, measured on AMD EPYC") && Catch::Contains("now / profile") &&
                 Catch::Contains("profile epyc-cpu "));
  CHECK_THAT(here.hdpsim("calibrate --check epyc-cpu --time-limit 1s --format csv").out,
             Catch::StartsWith("family,samples,rounds,ratio,"));
}

TEST_CASE("a profile that cannot be timed again here is refused with a fix", "[calibrate]") {
  const Workplace here;
  const Outcome published = here.hdpsim("calibrate --check bytescale-implied");
  CHECK(published.code == 2);
  CHECK_THAT(published.err,
             Catch::Contains("the profile bytescale-implied is published, not measured by a calibration") &&
                 Catch::Contains("hdpsim calibrate measures one of this machine"));
  std::string text = test::text_of(fs::path(HDPSIM_SOURCE_DIR) / "calib/profiles/epyc-cpu.yaml");
  text.replace(text.find("device: \"CPU\""), 13, "device: \"H200-141GB\"");
  here.write("h200.yaml", text);
  CHECK_THAT(here.refusal("calibrate --check h200.yaml", "export CUDA_VISIBLE_DEVICES=;"),
             Catch::Contains("the profile h200 is of a H200-141GB, and here is no GPU") &&
                 Catch::Contains("hdpsim calibrate measures this one"));
}

TEST_CASE("a calibration that cannot be is refused at once, with a word", "[calibrate]") {
  const Workplace here;
  for (const char* arguments :
       {"--time-limit soon", "--time-limit 0s", "--backend gpu", "--backend cpu --device 3", "--device -1",
        "--model nobody", "--nccl-tests nothing.txt", "--backend cpu --resume", "--report nothing.yaml",
        "--report configs/studies/tiny.yaml", "--report calib/profiles/cpu-datasheet.yaml --quick",
        "--backend cpu --out x.yaml --name y", "--check nobody", "--check epyc-cpu --quick",
        "--check epyc-cpu --from-steps sc21", "--check epyc-cpu --like sc21", "--backend cpu --format json"}) {
    const std::string outcome = here.refusal(fmt::format("calibrate {}", arguments));
    CHECK_FALSE(outcome.empty());
  }
  CHECK(files_in(here.folder()) == std::vector<std::string>{".stderr", ".stdout"});
}

TEST_CASE("a GPU that is not there is the machine's refusal", "[calibrate]") {
  const Workplace here;
  CHECK_THAT(here.machine_refusal("calibrate --backend cuda --time-limit 1s", "export CUDA_VISIBLE_DEVICES=;"),
             Catch::StartsWith("error: "));
  CHECK(here.hdpsim("calibrate --backend cpu --time-limit 1s --out /proc/nowhere").code == 3);
}

}  // namespace
}  // namespace hdpsim::spec
