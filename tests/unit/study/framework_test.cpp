#include "sim/study/framework.h"

#include <fstream>
#include <string>

#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::StudyFile;

std::string with_framework(const std::string& name) {
  return changed(good_study, "mesh: {tp: 2}", "mesh: {tp: 2}\nframework: {preset: " + name + "}");
}

TEST_CASE("a framework fills in what the study leaves out, and nothing else", "[study][framework]") {
  const Study study = StudyFile(with_framework("megatron-core-0.8")).load();
  const PointSpec& point = study.points.at(0).spec;
  CHECK(point.mesh.tp == 2);
  CHECK(point.recipe.overlap_tp);
  CHECK(point.recipe.overlap_grad_reduce);
  CHECK(point.recipe.gradient_buffer);
  CHECK(point.pipeline.overlaps_messages());  // with one stage there are none
  CHECK(point.recipe.loss == Loss::fp32);
  const Study own = StudyFile(with_framework("megatron-core-0.8")).load({"training.tp_comm_overlap=false"});
  CHECK_FALSE(own.points.at(0).spec.recipe.overlap_tp);
  CHECK(own.points.at(0).spec.recipe.overlap_grad_reduce);
}

TEST_CASE("a study that states what its framework says has the same runs", "[study][framework]") {
  const Study named = StudyFile(with_framework("pytorch-fsdp")).load();
  const Study stated = StudyFile(good_study).load({"mesh.zero=3", "overheads.host=pytorch"});
  CHECK(named.points.at(0).identity == stated.points.at(0).identity);
  CHECK(named.resolved.find("mesh")->find("zero")->text == "3");
}

TEST_CASE("the software of a framework's host and the device decide how long it takes to issue a kernel",
          "[study][framework]") {
  const auto issue = [](const std::string& name, const std::vector<std::string>& changes) {
    const Study study = StudyFile(with_framework(name)).load(changes);
    return study.points.at(0).spec.profile->overheads.host_issue;
  };
  REQUIRE(issue("megatron-lm-2021", {}));
  CHECK(issue("megatron-lm-2021", {})->time == 90'600_ns);
  CHECK(issue("megatron-lm-2021", {"overheads.host=pytorch"})->time == 13'480_ns);
  CHECK(issue("megatron-lm-2021", {"overheads.host_issue=60 us"})->time == 60_us);
  CHECK_FALSE(issue("megatron-lm-2021", {"kernels.launch=graphs"}));
  const auto of_profile = issue("megatron-lm-2021", {"overheads.host=profile"});
  CHECK((of_profile ? of_profile->time : Duration{}) != 90'600_ns);
  CHECK_FALSE(StudyFile(with_framework("megatron-lm-2021")).problems({"overheads.host=megatron"}).empty());
}

TEST_CASE("a host's file may tell loops in C++ and products in fp8 from other operations", "[study][framework]") {
  const auto overheads = [](const std::string& host) {
    const Study study = StudyFile(with_framework("megatron-lm-2021")).load({"overheads.host=" + host});
    return study.points.at(0).spec.profile->overheads;
  };
  const Overheads both = overheads("megatron-core-2025");
  REQUIRE((both.host_loop && both.host_narrow));
  CHECK(both.host_loop->time == 13'480_ns);
  CHECK(both.host_narrow->time == 86_us);
  CHECK((both.host_dispatch && both.host_dispatch->time == 640_us));
  CHECK_FALSE(overheads("megatron-lm").host_loop);
  CHECK_FALSE(overheads("megatron-lm").host_narrow);
}

TEST_CASE("every framework that is shipped trains a dense model", "[study][framework]") {
  const Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto names = framework_names(catalog.frameworks());
  CHECK(names.size() >= 5);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(StudyFile(with_framework(name)).problems().empty());
  }
}

TEST_CASE("frameworks of Megatron-Core train models with experts, too", "[study][framework]") {
  for (const char* name : {"megatron-core-0.8", "megatron-core-0.12", "megatron-bridge"}) {
    CAPTURE(name);
    const Study study = StudyFile(changed(with_framework(name), "llama-7b", "mixtral-8x7b")).load();
    CHECK(study.points.at(0).spec.recipe.overlap_grad_reduce);
  }
}

TEST_CASE("what a framework states stands where the study names it", "[study][framework]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "mine.yaml") << "source: a paper\ntraining:\n  moments: bf16\n  recompute: [norm]\n";
  Diagnostics problems;
  Value study = parse_document("study.yaml", "name: x\nframework: {preset: mine}\n", problems);
  fill_in_framework(study, folder.path(), problems);
  CHECK(problems.empty());
  const Value* training = study.find("training");
  REQUIRE(training != nullptr);
  for (const Position& position : {training->entries.at(0).position, training->entries.at(0).value.position,
                                   training->entries.at(1).value.items.at(0).position}) {
    CHECK(position.file == "study.yaml");
    CHECK(position.line == 2);
  }
}

TEST_CASE("a framework that does not exist is told with what there is", "[study][framework]") {
  const auto problems = StudyFile(with_framework("megatron-core-0.9")).problems();
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::EndsWith("there is no framework 'megatron-core-0.9'"));
  const auto empty = StudyFile(changed(good_study, "mesh: {tp: 2}", "mesh: {tp: 2}\nframework: {name: x}")).problems();
  CHECK(empty.size() == 2);  // 'name' is not known, and there is no 'preset'
}

}  // namespace
}  // namespace hdpsim
