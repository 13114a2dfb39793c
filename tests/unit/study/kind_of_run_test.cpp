#include "sim/study/kind_of_run.h"

#include <string>

#include "sim/study/framework.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::StudyFile;

RunKind kind_of(const std::vector<std::string>& overrides, const std::string& text = good_study) {
  return StudyFile(text).load(overrides).points.at(0).spec.kind;
}

TEST_CASE("the kind of a run is read off its study: lengths, experts, framework, device", "[study][trust]") {
  const RunKind mixed = kind_of({});
  CHECK(mixed.workload == Workload::mixed_lengths);
  CHECK(mixed.stack == "other");
  CHECK(mixed.device == "A100-80GB");
  CHECK(kind_of({"data.lengths={fixed: 8Ki}"}).workload == Workload::dense);
  CHECK(kind_of({"framework={preset: megatron-core-0.8}"}).stack == "nvidia");
  CHECK(kind_of({"framework={preset: pytorch-fsdp}"}).stack == "pytorch");
  CHECK(kind_of({}, changed(good_study, "llama-7b", "mixtral-8x7b")).workload == Workload::experts);
}

// LLaMA-7B of 8 key-value heads: 6 x 177.2 million weights a layer and token, one 32nd of the head's 6 x 131 million,
// and attention to 256 keys on the mean, 12 x 4,096 x 256. At 312 TFLOP/s and tp 2, 512 tokens of a layer take (6 x
// 181.3e6 + 12.6e6) x 512 / 2 / 312e12 s.
TEST_CASE("layers that a device at its peak computes in less than 2 ms are host-bound, but for graphs",
          "[study][trust]") {
  const std::vector<std::string> shortly = {"data.lengths={fixed: 512}", "data.context=512", "mesh.capacity=512"};
  const Study study = StudyFile(good_study).load(shortly);
  CHECK(layer_seconds_at_peak(study.points.at(0).spec) == Approx(0.903e-3).epsilon(0.01));
  CHECK(study.points.at(0).spec.kind.workload == Workload::host_bound);
  std::vector<std::string> graphs = shortly;
  graphs.emplace_back("kernels.launch=graphs");
  CHECK(kind_of(graphs).workload == Workload::dense);
  std::vector<std::string> longer = {"data.lengths={fixed: 2Ki}", "data.context=2Ki", "mesh.capacity=2Ki"};
  CHECK(kind_of(longer).workload == Workload::dense);
}

TEST_CASE("weights, states or the activations of all plans in host memory are a kind of their own", "[study][trust]") {
  const auto of_one_length = [](std::vector<std::string> overrides) {
    overrides.emplace_back("data.lengths={fixed: 8Ki}");
    return kind_of(overrides).workload;
  };
  CHECK(of_one_length({"plans=[{hdp-naive: {offload: auto}}]"}) == Workload::host_memory);
  CHECK(of_one_length({"plans=[{hdp-naive: {offload: auto}}, static]"}) == Workload::dense);
  CHECK(of_one_length({"plans=[{hdp-naive: {offload: none}}]"}) == Workload::dense);
  CHECK(of_one_length({"training.host={optimizer: 1}"}) == Workload::host_memory);
}

TEST_CASE("every framework that is shipped says what it runs on", "[study][trust]") {
  const Catalog catalog(HDPSIM_SOURCE_DIR);
  for (const std::string& name : framework_names(catalog.frameworks())) {
    CAPTURE(name);
    Diagnostics problems;
    const Value file = load_document((catalog.frameworks() / (name + ".yaml")).string(), problems);
    REQUIRE(file.find("stack") != nullptr);
    CHECK(framework_stack(Value::scalar(name), catalog.frameworks(), problems) == file.find("stack")->text);
    CHECK(problems.empty());
  }
  Diagnostics problems;
  CHECK(framework_stack({}, catalog.frameworks(), problems) == "other");
}

TEST_CASE("the errors of published runs change neither the identity nor the fingerprint of a point", "[study][trust]") {
  const Study study = StudyFile(good_study).load();
  const PointSpec& point = study.points.at(0).spec;
  REQUIRE(point.errors);
  CHECK(study.points.at(0).identity.find("trust") == std::string::npos);
  CHECK(study.run_info(0, 0).errors->step_time.sets == point.errors->step_time.sets);
}

}  // namespace
}  // namespace hdpsim
