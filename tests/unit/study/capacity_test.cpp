#include "sim/study/capacity.h"

#include <fmt/format.h>

#include "sim/analysis/memory_verdict.h"
#include "sim/program/activations_in_flight.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/every_schedule.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::StudyFile;

PointSpec point_of(const std::vector<std::string>& overrides) {
  return StudyFile(good_study).load(overrides).points.at(0).spec;
}

// With the largest gaps of the allocator.
Bytes peak(const PointSpec& point, std::int64_t tokens) {
  const DeviceShape shape{.tp = point.mesh.tp, .pool = point.mesh.hdp};
  const DeviceMemory device(point.model, whole_shape(point.model, shape), point.recipe);
  return with_largest_gaps(device.beside(device.peak({.tokens = tokens, .ranks = 2}), {}));
}

TEST_CASE("capacity: auto is the largest multiple of 256 tokens that fits a device", "[capacity]") {
  for (const char* memory : {"40 GB", "80 GB"}) {
    CAPTURE(memory);
    const std::string own_memory = std::string("cluster.node.gpu_memory=") + memory;
    const PointSpec point = point_of({"mesh.capacity=auto", own_memory, "data.tokens_per_step=64Mi"});
    CHECK(point.capacity_is_chosen);
    CHECK(point.capacity % 256 == 0);
    CHECK(peak(point, point.capacity) <= point.cluster.least_device_memory());
    CHECK(peak(point, point.capacity + 256) > point.cluster.least_device_memory());
    CHECK(point.setting().find("(auto)") != std::string::npos);
  }
}

TEST_CASE("where a capacity with room for the largest gaps does not hold the context, the chosen one is at risk",
          "[capacity]") {
  const auto spec = [](const std::string& context) {
    return point_of({"mesh.capacity=auto", "data.tokens_per_step=64Mi", "data.context=" + context});
  };
  const PointSpec usual = spec("8Ki");
  const std::int64_t held = usual.capacity * usual.mesh.hdp;
  CHECK(spec(fmt::format("{}", held)).capacity == usual.capacity);
  const PointSpec longer = spec(fmt::format("{}", held + 1));
  CHECK(longer.capacity > usual.capacity);
  CHECK(peak(longer, longer.capacity) > longer.cluster.least_device_memory());
}

TEST_CASE("what takes memory besides activations lowers the chosen capacity", "[capacity]") {
  const auto chosen = [](const std::string& override) {
    return point_of({"mesh.capacity=auto", "data.tokens_per_step=64Mi", override}).capacity;
  };
  const std::int64_t usual = chosen("mesh.zero=1");
  CHECK(chosen("mesh.zero=0") < usual);
  CHECK(chosen("mesh.zero=3") > usual);
  CHECK(chosen("training.loss=fp32") < usual);
  CHECK(chosen("memory.reserve=9 GB") < usual);
  CHECK(chosen("memory.fragmentation=0.2") < usual);
  CHECK(chosen("mesh.tp=4") > usual);
}

TEST_CASE("scores that are kept lower the chosen capacity with the square of the longest sequence", "[capacity]") {
  const auto chosen = [](const char* attention, const char* context) {
    return point_of({"mesh.capacity=auto", "data.tokens_per_step=64Mi", std::string("kernels.attention=") + attention,
                     std::string("data.context=") + context})
        .capacity;
  };
  CHECK(chosen("flash", "4Ki") == chosen("flash", "8Ki"));
  CHECK(chosen("unfused", "4Ki") < chosen("flash", "4Ki"));
  CHECK(chosen("unfused", "8Ki") < chosen("unfused", "4Ki"));
}

TEST_CASE("under every schedule plans for the chosen capacity fit, with offload too, and for 256 tokens more need not",
          "[capacity][pp]") {
  const std::vector<std::string> base = {"mesh.capacity=auto", "cluster.gpus=32", "data.tokens_per_step=1Mi",
                                         "data.context=64Ki",
                                         R"(plans=[static, hdp-naive, {hdp-balance: {offload: auto}},
                                                   {hdp-naive: {offload: token-wise}}])"};
  std::vector<std::string> meshes = {"mesh.pp=1",
                                     "mesh={tp: 2, pp: 2, capacity: auto, schedule: gpipe, recompute: full}"};
  for (const PipelineOptions& options : test::every_schedule(4)) {
    if (holds_all_micro_batches(*make_schedule(options, 4))) continue;  // a step does not fit
    meshes.push_back(fmt::format("mesh={{tp: 2, pp: 4, capacity: auto, schedule: {}, virtual_stages: {}}}",
                                 options.schedule, options.virtual_stages));
  }
  for (const std::string& mesh : meshes) {
    CAPTURE(mesh);
    std::vector<std::string> overrides = base;
    overrides.push_back(mesh);
    const Study study = StudyFile(good_study).load(overrides);
    const StudyPoint& point = study.points.at(0);
    for (std::size_t i = 0; i < point.planners.size(); ++i) {
      CAPTURE(study.plans[i].name, point.spec.capacity);
      CHECK(fits(point.planners[i]->plan(point.batches->step(0), 0), point.lowering(), point.room));
    }
    // A full pipeline of micro-batches of 256 tokens more.
    const std::int64_t tokens = point.spec.capacity + capacity_grain;
    Plan full;
    full.ranks = point.spec.mesh.hdp;
    full.schedule.resize(static_cast<std::size_t>(full.ranks));
    for (std::int64_t i = 0; i < 64; ++i) {
      full.micro_batches.push_back({.group = {HdpRank(0), HdpRank(1)}, .spans = {{SequenceId(0), 0, 2 * tokens}}});
      for (const std::size_t rank : {0, 1}) full.schedule[rank].emplace_back(i);
    }
    const ConnectionTable connections = connections_of(full, point.room.communicators);
    const Pipeline pipeline(full, point.spec.mesh.pp, point.spec.pipeline);
    const ChannelMemory channels{&connections, point.room.per_connection};
    const PlanMemory memory = memory_of(pipeline, point.lowering(), channels);
    CHECK(fit_of(memory.use(), {point.room.memory, memory.use().host}) != MemoryFit::fits);
  }
}

TEST_CASE("GPipe, which holds a whole step, has a chosen capacity only where a step fits", "[capacity][pp]") {
  const StudyFile file(changed(good_study, "mesh: {tp: 2}", "mesh: {tp: 2, pp: 4, capacity: auto, schedule: gpipe}"));
  const auto problems = file.problems({"data.tokens_per_step=16Mi"});
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::StartsWith("10:32: no capacity fits: ") &&
                              Catch::Contains("its schedule keeps the activations of all micro-batches of a step"));
}

TEST_CASE("token-wise offload without room for one token in host memory is an error, not a crash", "[capacity]") {
  const auto problems =
      StudyFile(changed(good_study, "plans: [static, hdp-naive]", "plans: [{hdp-balance: {offload: token-wise}}]"))
          .problems({"cluster.node.host_memory=1 MB"});
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::Contains("'offload' is token-wise, but the cluster has no host memory to copy to"));
}

TEST_CASE("a chosen capacity is never more than the tokens of a step", "[capacity]") {
  const PointSpec point = point_of({"mesh.capacity=auto", "data.context=4Ki", "data.tokens_per_step=4Ki"});
  CHECK(point.capacity == 4096);
}

TEST_CASE("a model that fills a device before its first token is an error where auto stands", "[capacity]") {
  const StudyFile file(changed(good_study, "mesh: {tp: 2}", "mesh: {tp: 2, capacity: auto}"));
  const auto problems = file.problems({"cluster.node.gpu_memory=20 GB"});
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::StartsWith("10:25: no capacity fits: of the 20.0 GB of a device, "));
}

}  // namespace
}  // namespace hdpsim
