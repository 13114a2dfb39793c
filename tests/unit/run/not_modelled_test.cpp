#include "sim/study/study_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "sim/cluster/device_facts.h"
#include "sim/run/runner.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

Study tiny(const std::vector<std::string>& overrides) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return load_study(HDPSIM_SOURCE_DIR "/configs/studies/tiny.yaml", overrides, catalog);
}

// A profile like that of the tiny study, which knows as much of connections as `connections` says.
std::string profile_with(const test::TemporaryFolder& folder, const std::string& connections) {
  std::ifstream shipped(HDPSIM_SOURCE_DIR "/calib/profiles/bytescale-implied.yaml");
  std::string text{std::istreambuf_iterator<char>(shipped), {}};
  const std::size_t begin = text.find("\nconnections:");
  text.replace(begin, text.find("\nbackward_ring:") - begin, "\n" + connections);
  const auto path = folder.path() / "other.yaml";
  std::ofstream(path) << text;
  return "profile=" + path.string();
}

std::vector<Run> all_runs_of(const Study& study) {
  return run_study(study, {}).value();
}

using Keys = std::vector<std::string>;

Keys unknown(const Study& study) {
  return study.run_info(0, 0).not_modelled;
}

TEST_CASE("a warm study leaves out what its profile does not know", "[connections]") {
  const Study study = tiny({});
  CHECK(unknown(study) == Keys{"memory_per_peer", "compute_beside_communication"});
  CHECK(cold_step_warnings(study).empty());
}

TEST_CASE("a cold study says which costs of its cold steps are not known", "[connections]") {
  const test::TemporaryFolder folder;
  const std::string profile = profile_with(folder, "");
  const Study one = tiny({profile, "mesh.connections=cold"});
  CHECK(unknown(one) == Keys{"first_contact", "memory_per_peer", "compute_beside_communication"});
  CHECK(cold_step_warnings(one) ==
        Keys{"warning: tiny has cold steps, but the profile other does not say 'connections.first_contact': it costs "
             "nothing here"});
  CHECK(cold_step_warnings(tiny({profile, "mesh.connections=cold", "mesh.groups=communicators"})).size() == 2);
  CHECK(cold_step_warnings(tiny({"mesh.connections=cold", "mesh.groups=communicators"})).empty());
}

TEST_CASE("a single rank talks to nobody and leaves nothing out", "[connections]") {
  const Study study = tiny({"cluster.gpus=8", "mesh.tp=8", "plans=[hdp-balance]", "compare_to=null", "data.context=4Ki",
                            "sweep=null", "mesh.connections=cold"});
  CHECK(unknown(study).empty());
}

TEST_CASE("a single rank may compute beside its own collectives of tensor parallelism", "[connections]") {
  const std::vector<std::string> one_rank = {"cluster.gpus=8",  "mesh.tp=8",        "plans=[hdp-balance]",
                                             "compare_to=null", "data.context=4Ki", "sweep=null"};
  for (const std::string_view overlap : {"training.tp_comm_overlap=true", "training.tp_gradient_overlap=true"}) {
    std::vector<std::string> overrides = one_rank;
    overrides.emplace_back(overlap);
    CHECK(unknown(tiny(overrides)) == Keys{"compute_beside_communication"});
  }
}

TEST_CASE("levels of ZeRO change the memory and the time", "[connections]") {
  CHECK(unknown(tiny({"mesh.zero=3"})) == Keys{"memory_per_peer", "compute_beside_communication"});
  const auto sharded = all_runs_of(tiny({"mesh.zero=3", "data.steps=1", "sweep=null"}));
  const auto whole = all_runs_of(tiny({"mesh.zero=0", "data.steps=1", "sweep=null"}));
  for (std::size_t run = 0; run < whole.size(); ++run) {
    CHECK(sharded[run].metrics.memory.device < whole[run].metrics.memory.device);
    CHECK(sharded[run].metrics.step_time_s.mean != whole[run].metrics.step_time_s.mean);
  }
}

TEST_CASE("cold steps are slower than warm ones, those that make communicators most", "[connections]") {
  const std::string few = "data.steps=1";
  const std::string rings = "plans=[static, hdp-naive, hdp-balance]";  // without offload, which needs fewer
  const auto warm = all_runs_of(tiny({few, rings}));
  const auto cold = all_runs_of(tiny({few, rings, "mesh.connections=cold"}));
  const auto many = all_runs_of(tiny({few, rings, "mesh.connections=cold", "mesh.groups=communicators"}));
  for (std::size_t run = 0; run < warm.size(); ++run) {
    const std::string& plan = warm[run].info.plan;
    CAPTURE(plan);
    const auto time = [run](const std::vector<Run>& runs) { return runs[run].result.steps[0].time; };
    CHECK(time(cold) >= time(warm) + 107_ms);  // 214 ms, part of which waits may hide
    CHECK(time(many) >= time(cold) + 1_s);
    CHECK(warm[run].result.steps[0].connections == cold[run].result.steps[0].connections);
    CHECK(warm[run].metrics.memory.parts == cold[run].metrics.memory.parts);
    CHECK(warm[run].metrics.memory.host == cold[run].metrics.memory.host);
    CHECK_FALSE(warm[run].metrics.memory.connections);
  }
}

TEST_CASE("channels take memory, more of it with a communicator for each group", "[connections]") {
  const test::TemporaryFolder folder;
  const std::string profile = profile_with(folder, "connections: {memory_per_peer: 12 MiB, source: a test}\n");
  const std::string rings = "plans=[static, hdp-naive, hdp-balance]";  // without offload, which needs fewer
  const auto one = all_runs_of(tiny({profile, rings, "data.steps=1", "sweep=null"}));
  const auto each = all_runs_of(tiny({profile, rings, "data.steps=1", "sweep=null", "mesh.groups=communicators"}));
  const auto without = all_runs_of(tiny({rings, "data.steps=1", "sweep=null"}));
  for (std::size_t run = 0; run < one.size(); ++run) {
    CAPTURE(one[run].info.plan);
    const RunMetrics& metrics = one[run].metrics;
    REQUIRE(metrics.memory.connections);
    CHECK(*metrics.memory.connections == metrics.connections.peers * 12_MiB);
    CHECK(metrics.memory.device <= without[run].metrics.memory.device + *metrics.memory.connections);
    CHECK(metrics.memory.device > without[run].metrics.memory.device);
    CHECK(each[run].metrics.memory.connections >= metrics.memory.connections);
    CHECK(each[run].metrics.step_time_s.mean == metrics.step_time_s.mean);  // a warm step
  }
  // Static rings are all alike; dynamic groups of many sizes share ranks.
  CHECK(each[0].metrics.memory.connections == one[0].metrics.memory.connections);
  CHECK(each[1].metrics.memory.connections > one[1].metrics.memory.connections);
}

TEST_CASE("a study says what it leaves out of its model, and nothing of one that it simulates whole", "[models]") {
  CHECK(model_notes(tiny({})).empty());
  const Keys gemma = model_notes(tiny({"model.preset=gemma-3-4b"}));
  CHECK(std::find(gemma.begin(), gemma.end(), "note: gemma-3-4b: left out is its encoder of 'vision_config'") !=
        gemma.end());
  CHECK(gemma.size() == 2);  // and what is said of windows
}

TEST_CASE("a study says where switches that add up change no collective", "[network]") {
  Study study = tiny({"sweep=null"});
  StudyPoint& point = study.points.at(0);
  CHECK(network_notes(study).empty());
  point.spec.cluster.in_network_reduction = true;
  CHECK(network_notes(study).empty());
  const std::string left_out = fmt::format("note: {}: left out is in_network_reduction: ", point.spec.cluster.name);
  point.spec.cluster.compute_capability = unknown_capability;
  CHECK(network_notes(study) == Keys{left_out + "NCCL does not run on " + point.spec.cluster.device});
  point.spec.cluster.fabric = TorusSpec{};
  CHECK(network_notes(study) == Keys{left_out + "no switches join the nodes of a torus"});
}

}  // namespace
}  // namespace hdpsim
