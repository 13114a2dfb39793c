#include "sim/run/framework_notes.h"

#include "sim/study/megatron_refusals.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::changed;
using test::good_study;
using test::StudyFile;
using Notes = std::vector<std::string>;

TEST_CASE("interleaved groups of micro-batches are whole, or the last has as many as there are stages", "[framework]") {
  for (const std::int64_t micro_batches : {8, 16, 64}) CHECK(interleaving_problem(micro_batches, 8, 8).empty());
  CHECK(interleaving_problem(12, 8, 8) ==
        "12 micro-batches of a replica under the interleaved schedule, which must be a multiple of the 8 stages");
  CHECK_FALSE(interleaving_problem(4, 8, 8).empty());
  // Groups of 10 on 4 stages: 24 leaves 4 over, 23 leaves 3.
  CHECK(interleaving_problem(24, 4, 10).empty());
  CHECK(
      interleaving_problem(23, 4, 10) ==
      "23 micro-batches of a replica under the interleaved schedule, which must be whole groups of 10, or leave one of "
      "at least 4 over");
  CHECK_FALSE(interleaving_problem(8, 4, 10).empty());
}

// Sequences of one length, one a micro-batch, on one pipeline of 4 stages.
Study pipelined(const std::string& mesh, std::int64_t micro_batches, const std::string& framework = "") {
  const std::string text = changed(changed(good_study, "{tp: 2}", mesh), "[static, hdp-naive]", "[static]");
  return StudyFile(text + framework)
      .load({"cluster.gpus=8", "data.lengths={fixed: 4Ki}", "data.context=4Ki", "mesh.capacity=4Ki",
             fmt::format("data.tokens_per_step={}", micro_batches * 4096)});
}

TEST_CASE("micro-batches that Megatron-LM's interleaved schedule refuses are said, with who refuses them",
          "[framework]") {
  const std::string mesh = "{tp: 2, pp: 4, schedule: interleaved, virtual_stages: 2}";
  CHECK(framework_notes(pipelined(mesh, 8)).empty());
  CHECK(
      framework_notes(pipelined(mesh, 6)) ==
      Notes{"note: static: Megatron-LM does not run 6 micro-batches of a replica under the interleaved schedule, which "
            "must be a multiple of the 4 stages (rank 0 of step 0)"});
  const Notes named = framework_notes(pipelined(mesh, 2, "framework: {preset: megatron-core-0.8}\n"));
  REQUIRE(named.size() == 1);
  CHECK_THAT(named[0], Catch::StartsWith("note: static: megatron-core-0.8 does not run 2 micro-batches"));
  // PyTorch has other rules, and other schedules none.
  CHECK(framework_notes(pipelined(mesh, 6, "framework: {preset: pytorch-fsdp}\n")).empty());
  CHECK(framework_notes(pipelined("{tp: 2, pp: 4}", 6)).empty());
}

TEST_CASE("layers that are left over, and two interleaved stages without overlap, are said", "[framework]") {
  CHECK(
      framework_notes(pipelined("{tp: 1, pp: 8, account_for_loss: true}", 8)) ==
      Notes{
          "note: good: Megatron-LM does not run 33 layers, counting embedding or loss, on 8 stages, as nothing may be "
          "left over"});
  CHECK(framework_notes(pipelined("{tp: 2, pp: 4, schedule: interleaved, virtual_stages: 3}", 8)) ==
        Notes{"note: good: Megatron-LM does not run 32 layers on 4 stages of 3 chunks, as nothing may be left over"});
  CHECK(framework_notes(pipelined("{tp: 1, pp: 8, schedule: zb-h1, account_for_loss: true}", 8)).empty());
  CHECK(framework_notes(pipelined("{tp: 4, pp: 2, schedule: interleaved, virtual_stages: 2}", 8,
                                  "training: {overlap_p2p_comm: never}\n")) ==
        Notes{"note: good: Megatron-LM does not run the interleaved schedule on 2 stages without overlap_p2p_comm"});
}

TEST_CASE("groups that trade heads and do not divide them are said, with what is simulated", "[framework]") {
  // 8 key-value heads over tp 2 leave 4.
  const auto notes = [](const std::string& mesh) {
    const std::string text = changed(changed(good_study, "{tp: 2}", mesh), "[static, hdp-naive]", "[static]");
    return framework_notes(StudyFile(text).load({"cluster.gpus=64", "data.context=256Ki"}));
  };
  CHECK(notes("{tp: 2, cp_comm_type: a2a, capacity: 64Ki}").empty());
  CHECK(
      notes("{tp: 2, cp_comm_type: a2a, capacity: 8Ki}") ==
      Notes{
          "note: static: Megatron-LM does not run 32 ranks that trade heads (cp_comm_type: a2a), as they do not divide "
          "the 4 key-value heads of a device; simulated are 4 of them, in a ring of 8"});
  CHECK(notes("{tp: 2, cp_comm_type: a2a, a2a_ranks: 4, capacity: 8Ki}").empty());
  CHECK(notes("{tp: 2, cp_comm_type: a2a, a2a_ranks: 8, capacity: 8Ki}").size() == 1);
  CHECK(notes("{tp: 2, cp_comm_type: p2p, capacity: 8Ki}").empty());
}

}  // namespace
}  // namespace hdpsim
