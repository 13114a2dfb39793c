#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

constexpr const char* streamed_study = R"(name: streamed
cluster: {preset: rtx4090-workstation, gpus: 8, node: {gpus: 8}}
model: {preset: llama3-8b}
profile: rtx4090-published
data: {lengths: {fixed: 2Ki}, context: 8Ki, tokens_per_step: 128Ki, steps: 1}
training: {recompute: full}
mesh: {tp: 1, pp: 8, capacity: 8Ki, schedule: roundpipe}
plans: [static]
)";

std::string problems(const std::vector<std::string>& overrides) {
  try {
    (void)test::StudyFile(streamed_study).load(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a run with streamed weights is of the kind that uses host memory", "[study][trust]") {
  CHECK(test::StudyFile(streamed_study).load({}).points.at(0).spec.kind.workload == Workload::host_memory);
}

TEST_CASE("stages go round the GPUs of one node, which run whole layers", "[study]") {
  using Catch::Contains;
  CHECK(problems({}).empty());
  CHECK(problems({"cluster.gpus=1", "cluster.node.gpus=1", "mesh.pp=1"}).empty());
  CHECK_THAT(problems({"mesh.tp=2", "mesh.pp=4"}), Contains("every GPU runs whole layers"));
  CHECK_THAT(problems({"mesh.pp=4"}), Contains("its GPUs are one pipeline"));
  CHECK_THAT(problems({"cluster={preset: a100-rail-3tier, gpus: 16}", "profile=a100-sxm-published", "mesh.pp=16"}),
             Contains("its GPUs have one host, and a node has 8"));
  CHECK_THAT(problems({"training.recompute=none"}), Contains("computed again from its input"));
  CHECK_THAT(problems({"training.host={optimizer: 0.5}"}), Contains("all states are in host memory"));
  CHECK_THAT(problems({"mesh.account_for_loss=true"}), Contains("cuts the layers by their times"));
  CHECK_THAT(problems({"model.preset=deepseek-v2"}), Contains("layers of several kinds"));
}

TEST_CASE("fewer micro-batches than GPUs are refused where the capacity is stated", "[study]") {
  const std::string said = problems({"mesh.capacity=32Ki"});
  CHECK_THAT(said, Catch::Contains("fewer micro-batches of 32768 tokens than the schedule 'roundpipe' has GPUs, 8") &&
                       Catch::Contains("a 'capacity' of at most 16384") && Catch::Contains("mesh.capacity"));
}

TEST_CASE("all problems of a streamed pipeline are reported together", "[study]") {
  const std::string said = problems({"mesh.pp=4", "training.recompute=none", "mesh.account_for_loss=true"});
  for (const char* part : {"one pipeline", "computed again", "by their times"}) CHECK_THAT(said, Catch::Contains(part));
}

TEST_CASE("a chosen capacity leaves a micro-batch for each GPU", "[study]") {
  const auto capacity = [](const std::string& tokens) {
    return test::StudyFile(streamed_study)
        .load({"mesh.capacity=auto", "data.tokens_per_step=" + tokens})
        .points.at(0)
        .spec.capacity;
  };
  CHECK(capacity("64Ki") == 8 * 1024);
  CHECK(capacity("8Mi") < 1024 * 1024);
  CHECK(capacity("8Mi") == capacity("16Mi"));
}

}  // namespace
}  // namespace hdpsim
