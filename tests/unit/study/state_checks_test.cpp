#include "sim/study/state_checks.h"

#include <string>
#include <vector>

#include "sim/model/recipe.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::Problems;
using test::StudyFile;

// The good study with keys of `training`, and with ones of its mesh.
StudyFile study_with_states(const std::string& training, const std::string& mesh = "zero: 1") {
  return StudyFile(changed(good_study, "mesh: {", "training: {" + training + "}\nmesh: {" + mesh + ", "));
}

// Whether the only problem of the study ends like this.
bool is_refused(const std::string& training, const std::string& mesh, const std::string& how) {
  const Problems problems = study_with_states(training, mesh).problems();
  CAPTURE(problems);
  return problems.size() == 1 && problems[0].ends_with(how);
}

TEST_CASE("a study states adapters by the names of HuggingFace or of Megatron", "[states]") {
  const auto lora_of = [](const std::string& text) {
    return study_with_states("lora: {" + text + "}").load().points[0].spec.recipe.lora;
  };
  CHECK(lora_of("rank: 8") == Lora{.rank = 8});
  CHECK(lora_of("rank: 8, targets: all-linear, dropout: true, base: nf4_double") ==
        Lora{.rank = 8, .dropout = true, .base = NumberType::nf4_double});
  CHECK(lora_of("rank: 8, targets: [q_proj, linear_proj]").targets ==
        AdapterTargets{AdapterTarget::q_proj, AdapterTarget::o_proj});
  CHECK(lora_of("rank: 8, targets: [linear_qkv, linear_fc1, linear_fc2]").targets ==
        AdapterTargets{AdapterTarget::linear_qkv, AdapterTarget::linear_fc1, AdapterTarget::down_proj});
  CHECK_FALSE(StudyFile(good_study).load().points[0].spec.recipe.lora.is_on());
}

TEST_CASE("the devices of a node share its host", "[states]") {
  const HostStates host =
      study_with_states("host: {optimizer: 0.5, overlap: true, updates_per_s: 1e9}").load().points[0].spec.recipe.host;
  CHECK(host.optimizer == 0.5);
  CHECK(host.overlaps);
  CHECK(host.updates_per_s == 1e9);
  CHECK(host.devices == 8);
}

TEST_CASE("types of states that do not suit each other are refused", "[states]") {
  CHECK(is_refused("gather: bf16", "zero: 2", "shards of parameters are gathered with zero: 3 alone"));
  CHECK(is_refused("reduce: fp32", "zero: 1", "below zero: 2 gradients are reduced as they are summed"));
  CHECK(is_refused("parameters: fp8", "zero: 1",
                   "parameters in fp8 are what products in fp8 read: those of 'kernels.linear' fp8, fp8_current or "
                   "fp8_blocks"));
  for (const char* fine : {"parameters: fp32", "master: none, moments: int8", "parameters: fp32, reduce: fp32"}) {
    CHECK(study_with_states(fine, "zero: 2").problems().empty());
  }
}

TEST_CASE("experts under autocast are refused, and gathered in bf16 they are not", "[states]") {
  const auto problems_of = [](const std::string& training, const std::string& mesh) {
    return StudyFile(changed(changed(good_study, "llama-7b", "mixtral-8x7b"), "mesh: {",
                             "training: {" + training + "}\nmesh: {" + mesh + ", "))
        .problems();
  };
  const Problems problems = problems_of("parameters: fp32", "zero: 1");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].ends_with("experts under autocast, as of mixtral-8x7b, are not known"));
  CHECK(problems_of("parameters: fp32, gather: bf16", "zero: 3").empty());
}

TEST_CASE("adapters that are not known are refused", "[states]") {
  CHECK(is_refused("lora: {rank: 8, targets: [q_proj, linear_qkv]}", "zero: 1",
                   "linear_qkv is q_proj, k_proj and v_proj together"));
  CHECK(is_refused("lora: {rank: 8, targets: [linear_fc1, up_proj]}", "zero: 1",
                   "linear_fc1 is gate_proj and up_proj together"));
  CHECK(is_refused("lora: {rank: 8}, optimizer: muon", "zero: 1", "what Muon makes of adapters is not known"));
  CHECK(is_refused("lora: {rank: 8}, tp_comm_overlap: true", "zero: 1",
                   "which products overlap with collectives beside adapters is not known"));
  CHECK(is_refused("lora: {targets: [q_proj]}", "zero: 1", "needs 'rank'"));
  const StudyFile experts(
      changed(changed(good_study, "llama-7b", "mixtral-8x7b"), "mesh: {", "training: {lora: {rank: 8}}\nmesh: {"));
  const Problems problems = experts.problems();
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].ends_with("adapters of experts, as in mixtral-8x7b, are not known"));
}

TEST_CASE("what a host cannot hold or update is refused", "[states]") {
  CHECK(
      is_refused("host: {parameters: true}", "zero: 2", "shards of parameters are in host memory with zero: 3 alone"));
  CHECK(is_refused("host: {optimizer: 1}, optimizer: lamb", "zero: 1", "hosts update by Adam"));
}

}  // namespace
}  // namespace hdpsim
