#include "sim/plan/updates.h"

#include "sim/plan/expert_waves.h"
#include "tests/support/small_world.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

Plan two_updates() {
  return joined_updates(
      {test::plan_of(3, 4, {{{0, 1}, 60}, {{2}, 30}}), test::plan_of(3, 4, {{{1}, 20}, {{1, 2}, 80}})});
}

// The second plan's sequences are numbered from 0 on, as those of the first.
Plan sound_updates() {
  Plan plan = two_updates();
  plan.sequence_tokens = {60, 30, 20, 80};
  for (std::size_t id = 2; id < 4; ++id) plan.micro_batches[id].spans[0].sequence = SequenceId(id);
  return plan;
}

std::optional<Plan> read_again(const Plan& plan) {
  Diagnostics diagnostics;
  return read_plan("plan.json", plan_text(plan), diagnostics);
}

}  // namespace

TEST_CASE("plans of one update each are joined in their order, and split again", "[plan][updates]") {
  const Plan plan = two_updates();
  CHECK(update_count(plan) == 2);
  CHECK(plan.schedule[1] == std::vector<MicroBatchId>{MicroBatchId(0), MicroBatchId(2), MicroBatchId(3)});
  const std::vector<Plan> updates = split_by_update(plan);
  REQUIRE(updates.size() == 2);
  CHECK(updates[1].schedule[0].empty());
  CHECK(updates[1].schedule[2] == std::vector<MicroBatchId>{MicroBatchId(1)});
  CHECK(update_count(updates[1]) == 1);
  CHECK(joined_updates(updates) == plan);
  CHECK(split_by_update(updates[0]) == std::vector<Plan>{updates[0]});
}

TEST_CASE("a plan's file states the update of a micro-batch behind the first", "[plan][updates]") {
  const Plan plan = sound_updates();
  CHECK(check_plan(plan).empty());
  CHECK(read_again(plan) == plan);
  CHECK_THAT(plan_text(plan), Catch::Contains(R"({"group": "1", "spans": [2], "update": 1})"));
  CHECK_THAT(plan_text(split_by_update(plan)[0]), !Catch::Contains("update"));
}

TEST_CASE("updates follow each other in the plan and on every rank", "[plan][updates][check]") {
  Plan jumps = sound_updates();
  jumps.micro_batches[3].update = 3;
  CHECK(check_plan(jumps) == std::vector<std::string>{"micro-batch 3 belongs to update 3, behind those of 1: list "
                                                      "micro-batches by update, from 0 on"});
  Plan later = sound_updates();
  for (MicroBatch& micro_batch : later.micro_batches) ++micro_batch.update;
  CHECK(check_plan(later) == std::vector<std::string>{"micro-batch 0 belongs to update 1, behind those of 0: list "
                                                      "micro-batches by update, from 0 on"});
  Plan mixed = sound_updates();
  std::swap(mixed.schedule[1][0], mixed.schedule[1][1]);
  CHECK(check_plan(mixed) == std::vector<std::string>{"rank 1 runs micro-batch 0 of update 0 after one of update 1"});
}

TEST_CASE("chunks continue others within a plan of one update alone", "[plan][updates][check]") {
  Plan plan = joined_updates({test::plan_of(1, 4, {{{0}, 60}}), test::plan_of(1, 4, {{{0}, 20}})});
  plan.sequence_tokens = {80};
  plan.micro_batches[1].spans = {{SequenceId(0), 60, 20}};
  plan.micro_batches[1].continues = true;
  CHECK(check_plan(plan) == std::vector<std::string>{"chunks continue others in a plan of 2 updates"});
}

TEST_CASE("expert groups run waves of each update by itself", "[plan][updates][experts]") {
  Plan plan = joined_updates({test::plan_of(2, 4, {{{0}, 60}}), test::plan_of(2, 4, {{{1}, 20}, {{0}, 30}})});
  plan.sequence_tokens = {60, 20, 30};
  plan.micro_batches[1].spans[0].sequence = SequenceId(1);
  plan.micro_batches[2].spans[0].sequence = SequenceId(2);
  const Plan waves = in_expert_waves(plan, 2, 0);
  CHECK(check_plan(waves).empty());
  // Rank 1 has nothing in the wave of the first update; the two of the second are one wave.
  CHECK(waves.micro_batches.size() == 4);
  for (const auto& list : waves.schedule) CHECK(list.size() == 2);
  Plan wrong = waves;
  wrong.micro_batches[1].update = 1;
  CHECK(check_plan(wrong) == std::vector<std::string>{"rank 1 runs micro-batch 1 of update 1 in a wave of update 0"});
}

TEST_CASE("plan time: all ranks end an update together, and a pipeline fills once for each", "[plan][updates][time]") {
  WorkModel work;
  work.per_token = 1;
  const PlanTime time = plan_time(sound_updates(), test::with_plain_rings(work));
  // Ranks 0 and 1 run 30 tokens each, and rank 2 as many; then rank 1 its 20, and 1 and 2 run 40.
  CHECK(time.finish == std::vector<double>{30, 30 + 20 + 40, 30 + 20 + 40});
  CHECK(time.busy == std::vector<double>{30, 30 + 20 + 40, 30 + 40});
  CHECK(time.step(2) == 90 + 30 + 40);
}

}  // namespace hdpsim
