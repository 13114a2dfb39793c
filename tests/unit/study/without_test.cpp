#include "sim/study/override.h"

#include "sim/document/values.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::good_study;
using test::Problems;
using test::StudyFile;

Value turned_off(const std::string& text, const std::vector<std::string>& names) {
  Diagnostics diagnostics;
  Value study = parse_document("study.yaml", text, diagnostics);
  apply_without(study, names, diagnostics);
  CHECK(diagnostics.empty());
  return study;
}

std::string plans_without(const std::string& mechanism) {
  const std::string text = "plans: [static, hdp-naive, {hdp-balance: {offload: auto, delta: 0.02}}]\n";
  return line_of(*turned_off(text, {mechanism}).find("plans"));
}

TEST_CASE("without a mechanism of plans all plans that have it say so", "[without]") {
  CHECK(plans_without("offload") ==
        "[static, {hdp-naive: {offload: none}}, {hdp-balance: {offload: none, delta: 0.02}}]");
  CHECK(plans_without("balance") == "[static, hdp-naive, {hdp-balance: {offload: auto, delta: 0.02, balance: none}}]");
  CHECK(plans_without("dynamic-groups") ==
        "[static, {hdp-naive: {groups: uniform}}, "
        "{hdp-balance: {offload: auto, delta: 0.02, groups: uniform}}]");
}

TEST_CASE("without a section of the study the section is gone, from the sweep too", "[without]") {
  const Value study =
      turned_off("noise: {step: {cv: 0.1}}\nfaults: []\nsweep: {noise.step.cv: [0, 0.1], grain: [fluid]}",
                 {"noise", "faults", "loading"});
  CHECK(line_of(*study.find("noise")) == "{spread: 0}");  // nor that of the profile
  CHECK(study.find("faults") == nullptr);
  CHECK(line_of(*study.find("sweep")) == "{grain: [fluid]}");
}

TEST_CASE("without contention, recomputation and cold connections the study says what stands in their place",
          "[without]") {
  const Value study = turned_off("mesh: {connections: cold}\ntraining: {recompute: full}\n",
                                 {"contention", "recompute", "cold-connections"});
  CHECK(study.find("grain")->text == "closed_form");
  CHECK(line_of(*study.find("mesh")) == "{connections: warm}");
  CHECK(line_of(*study.find("training")) == "{recompute: none}");
}

TEST_CASE("a sweep does not put back what a study is run without", "[without]") {
  const Value study = turned_off("sweep: {training.recompute: [none, full], mesh.tp: [1, 2], grain: [fluid, exact]}",
                                 {"recompute", "contention"});
  CHECK(line_of(*study.find("training")) == "{recompute: none}");
  CHECK(line_of(*study.find("sweep")) == "{mesh.tp: [1, 2]}");
}

TEST_CASE("a study has a mechanism if turning it off changes it", "[without]") {
  Diagnostics diagnostics;
  const Value study = parse_document("study.yaml",
                                     "plans: [static, {hdp-balance: {offload: none}}]\n"
                                     "mesh: {connections: warm}\ntraining: {recompute: full}\n"
                                     "failures: {node_mtbf: 1 d, checkpoint: 1 s}\n",
                                     diagnostics);
  for (const char* name : {"balance", "dynamic-groups", "recompute", "failures", "contention"}) {
    INFO(name);
    CHECK(has_mechanism(study, name));
  }
  for (const char* name : {"offload", "cold-connections", "nic-spread", "loading", "stragglers", "background"}) {
    INFO(name);
    CHECK_FALSE(has_mechanism(study, name));
  }
}

TEST_CASE("every mechanism can be turned off of every study", "[without]") {
  const StudyFile file(good_study);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  CHECK(load_study(file.path(), {}, catalog, mechanism_names()).run_count() == 2);
}

TEST_CASE("unknown mechanisms are told, all of them and beside what else is wrong", "[without]") {
  const StudyFile file(good_study);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  try {
    (void)load_study(file.path(), {"data.stepz=3"}, catalog, {"ofload", "noise", "magic"});
    FAIL("accepted");
  } catch (const InputError& error) {
    const auto problems = error.diagnostics().sorted();
    REQUIRE(problems.size() == 3);
    CHECK(problems[0].message.find("stepz") != std::string::npos);
    CHECK(problems[1].message == "there is no mechanism 'ofload'");
    CHECK_THAT(problems[1].help, Catch::Contains("offload"));
    CHECK(problems[2].message == "there is no mechanism 'magic'");
    CHECK(problems[2].position.line == 3);
    CHECK_THAT(error.diagnostics().text(), Catch::Contains("--without:3:1"));
  }
}

}  // namespace
}  // namespace hdpsim
