#include "sim/validate/step_log.h"

#include "tests/support/small_validation_set.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

std::optional<ValidationSet> read_log(const std::string& csv, std::string& problems) {
  const StudyFile file(test::small_validation_set);
  file.add("steps.csv", csv);
  Diagnostics found;
  auto set = load_step_log((file.folder() / "steps.csv").string(), file.path(), found);
  problems = found.text();
  return set;
}

TEST_CASE("lines of a log become the rows of a set, with all that the rows of another have in common", "[log]") {
  std::string problems;
  const auto set = read_log(
      "\xEF\xBB\xBF# of May\n"  // as programs for spreadsheets write it
      "tp, dp, micro_batch, global_batch, sequence, step_time_s, case\n"
      "1, 8, 2, 16, 4Ki, 2.5, \"plain, long\"\r\n"
      "\n"
      "2, 4, 1, 16, 4Ki, 3.5, other\n",
      problems);
  CHECK(problems.empty());
  REQUIRE(set);
  REQUIRE(set->cases.size() == 2);
  CHECK(set->name == "small");
  CHECK(set->cases[0].name == "plain, long");
  CHECK(set->cases[0].published.front().value == 2.5);
  CHECK(set->cases[1].study.find("profile")->text == "bytescale-implied");
  CHECK(set->cases[1].study.find("mesh")->find("tp")->text == "2");
}

TEST_CASE("steps of one job become their median", "[log]") {
  std::string problems;
  const auto set = read_log(
      "tp,dp,global_batch,sequence,step_time_s\n"
      "1,8,16,4Ki,2.0\n"
      "2,4,16,4Ki,9\n"
      "1,8,16,4Ki,2.2\n"
      "1,8,16,4Ki,2.1\n"
      "1,8,16,4Ki,2120 ms\n"
      "1,8,16,4Ki,30\n",  // one that waited for a file does not move the others
      problems);
  CHECK(problems.empty());
  REQUIRE(set);
  REQUIRE(set->cases.size() == 2);
  CHECK(set->cases[0].published.front().value == Approx(2.12));
  CHECK(set->cases[1].published.front().value == 9);
}

TEST_CASE("steps of one job that contradict each other are told, with all other problems, at their places", "[log]") {
  std::string problems;
  CHECK_FALSE(
      read_log("tp,dp,global_batch,sequence,step_time_s\n"
               "1,8,16,4Ki,2.0\n"
               "1,8,16,4Ki,4.0\n"
               "2,4,16\n",
               problems));
  CHECK_THAT(problems, Catch::Contains("steps.csv:2:12: error: 2 steps of one job contradict each other") &&
                           Catch::Contains("steps.csv:4:1: error: a line has 5 cells, one a column; this one has 3"));
}

TEST_CASE("a header that does not suit its lines is one problem, however many lines there are", "[log]") {
  std::string lines;
  for (int step = 0; step < 40; ++step) lines += "1,8,16,4Ki,2." + std::to_string(step) + "\n";
  std::string problems;
  const auto count = [&](const std::string& header) {
    CHECK_FALSE(read_log(header + "\n" + lines, problems));
    std::size_t errors = 0;
    for (std::size_t at = problems.find("error:"); at != std::string::npos; at = problems.find("error:", at + 1))
      ++errors;
    return errors;
  };
  CHECK(count("tp,dp,global_batch,sequence,step_tim_s") == 1);
  CHECK_THAT(problems, Catch::Contains("there is no column 'step_tim_s'") && Catch::Contains("step_time_s"));
  CHECK(count("tp,dp,globalbatch,sequence,step_time_s") == 1);
  CHECK_THAT(problems, Catch::Contains("did you mean 'global_batch'?"));
  CHECK(count("tp,dp global_batch,sequence,step_time_s") == 1);
  CHECK_THAT(problems,
             Catch::Contains("steps.csv:1:1: error: 4 columns are named here, and each of the 40 lines has 5 cells"));
  lines = "1;8;16;4Ki;2\n";
  CHECK(count("tp;dp;global_batch;sequence;step_time_s") == 1);
  CHECK_THAT(problems, Catch::Contains("separate columns by commas"));
}

TEST_CASE("the log of a framework is steps of the one job that its set states", "[log]") {
  const std::string job =
      "name: mine\nabout: a test\nsource: nobody\nstudy:\n  cluster: {preset: a100-rail-3tier, gpus: 8}\n"
      "  model: {preset: llama-7b}\n  profile: a100-published\n  plans: [static]\n"
      "  data: {lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 64Ki, steps: 1}\n"
      "  mesh: {tp: 2, capacity: 4Ki}\n";
  const StudyFile file(job);
  file.add("run.log",
           "step: 10  loss: 6.1  tps: 5,856  mfu: 34 %\nstep: 20  loss: 6.0  tps: 5,844\nstep: 30  tps: 5,850\n");
  file.add("notes.txt", "it was fast\n");
  Diagnostics found;
  const auto set = load_step_log((file.folder() / "run.log").string(), file.path(), found);
  INFO(found.text());
  REQUIRE(set);
  REQUIRE(set->cases.size() == 1);
  CHECK(set->cases[0].published.front().quantity == Quantity::tokens_per_s_per_gpu);
  CHECK(set->cases[0].published.front().value == 5850);
  CHECK_FALSE(load_step_log((file.folder() / "notes.txt").string(), file.path(), found));
  CHECK_THAT(found.text(), Catch::Contains("this is no log of a framework that is known, and no table of steps"));
}

TEST_CASE("a batch that replicas cannot share in whole micro-batches is told at its place", "[log]") {
  std::string problems;
  CHECK_FALSE(read_log("tp,dp,micro_batch,global_batch,sequence,step_time_s\n1,8,4,72,4Ki,2.0\n", problems));
  CHECK_THAT(problems,
             Catch::Contains("steps.csv:2:7: error: 72 sequences are no multiple of 32 = 4 a micro-batch x 8"));
}

TEST_CASE("a log needs a set that says what its steps have in common, and a set needs none", "[log]") {
  const StudyFile file(test::small_validation_set);
  file.add("steps.csv", "tp\n1\n");
  Diagnostics alone;
  CHECK_FALSE(load_step_log((file.folder() / "steps.csv").string(), "", alone));
  CHECK_THAT(alone.text(), Catch::Contains("--like"));
  Diagnostics both;
  CHECK_FALSE(load_step_log(file.path(), file.path(), both));
  CHECK_THAT(both.text(), Catch::Contains("leave out --like"));
  Diagnostics set;
  CHECK(load_step_log(file.path(), "", set));
  std::string problems;
  CHECK_FALSE(read_log("# nothing\n", problems));
  CHECK_THAT(problems, Catch::Contains("there is no line of columns"));
}

}  // namespace
}  // namespace hdpsim
