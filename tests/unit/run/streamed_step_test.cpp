#include "sim/run/step.h"
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

SimulatedStep step_of(const std::vector<std::string>& overrides) {
  const Study study = test::StudyFile(streamed_study).load(overrides);
  const StudyPoint& point = study.points.at(0);
  const auto world = point.make_world();
  return simulate_step(point, 0, 0, *world);
}

TEST_CASE("every GPU of a streamed pipeline accounts for its whole step, which is above its bound", "[run]") {
  for (const char* schedule : {"roundpipe", "roundpipe-sync"}) {
    const SimulatedStep step = step_of({std::string("mesh.schedule=") + schedule});
    REQUIRE(step.ranks.size() == 8);
    for (const Breakdown& rank : step.ranks) CHECK(rank.total() == step.result.time);
    CHECK(step.result.time >= step.result.bound);
    CHECK(step.result.bound > Duration{});
  }
}

TEST_CASE("a step that drains takes as much longer as its bubble and its update", "[run]") {
  const StepResult behind = step_of({}).result;
  const StepResult drained = step_of({"mesh.schedule=roundpipe-sync"}).result;
  const auto work = [](const StepResult& step) { return step.mean[Activity::linear] + step.mean[Activity::attention]; };
  // Steps among others do not quite repeat each other.
  CHECK(work(drained).seconds() == Approx(work(behind).seconds()).epsilon(0.005));
  CHECK(behind.mean[Activity::optimizer] == Duration{});
  // All parameters at the host's rate.
  CHECK(drained.mean[Activity::optimizer].seconds() == Approx(8.03e9 / 3.9e9).epsilon(0.1));
  CHECK(drained.mean[Activity::bubble] > behind.mean[Activity::bubble]);
}

TEST_CASE("slow links to the host make a step wait for weights", "[run]") {
  const Duration usual = step_of({}).result.mean[Activity::offload_stall];
  const Duration slow =
      step_of({"cluster.node.pcie={bandwidth: 1 GB/s, gpus_per_uplink: 1}"}).result.mean[Activity::offload_stall];
  CHECK(slow > 10 * (usual + Duration::seconds(0.1)));
}

TEST_CASE("a device has the weights of two stages, the host the states and what layers keep", "[run]") {
  const MemoryUse memory = step_of({}).result.memory;
  // 16 bytes of each of 8.03 billion parameters, and 2 x 4096 bytes of 128Ki tokens of 32 layers and the embedding.
  const double host = (16 * 8.03e9 + 8192.0 * 131072 * 33) / 8;
  CHECK(static_cast<double>(memory.host.count()) == Approx(host).epsilon(0.02));
  CHECK(static_cast<double>((memory.parts[MemoryPart::parameters] + memory.parts[MemoryPart::gradients]).count()) <=
        0.6 * 24e9);
  CHECK(memory.parts[MemoryPart::optimizer] == Bytes{});
}

}  // namespace
}  // namespace hdpsim
