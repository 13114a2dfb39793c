#include "sim/plan/given_plans.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Strings = std::vector<std::string>;

/// The plan that hdp-naive makes of two sequences, in the file of a step.
GivenPlan given(std::int64_t step, const PlanningContext& pool = small_pool()) {
  Plan plan = plan_of("hdp-naive", pool, {250, 80});
  plan.step = step;
  return {"plans/" + std::to_string(step) + ".json", std::move(plan)};
}

std::unique_ptr<Planner> planner_of(std::vector<GivenPlan> plans, const PlanningContext& pool, Diagnostics& found) {
  auto all = std::make_shared<GivenPlans>();
  for (GivenPlan& plan : plans) {
    const std::int64_t step = plan.plan.step;
    all->by_step.emplace(step, std::move(plan));
  }
  return make_planner(given_policy("mine", all, Value::map({"study.yaml", 11, 5})), pool, found);
}

// The first problem of a plan that is refused, with its place.
std::string refusal(const Planner& planner, const std::vector<std::int64_t>& lengths, std::int64_t step) {
  try {
    (void)planner.plan(batch_of(lengths), step);
  } catch (const InputError& error) {
    const Diagnostic first = error.diagnostics().sorted().front();
    return first.position.file + ":" + std::to_string(first.position.line) + ": " + first.message;
  }
  return "";
}

Strings problems_of_pool(GivenPlan plan, const PlanningContext& pool) {
  Diagnostics found;
  const auto planner = planner_of({std::move(plan)}, pool, found);
  CHECK(planner == nullptr);
  Strings problems;
  for (const Diagnostic& problem : found.sorted()) problems.push_back(problem.position.file + ": " + problem.message);
  return problems;
}

}  // namespace

TEST_CASE("a given plan is handed out for its step and its batch, under its own name", "[given]") {
  Diagnostics found;
  const auto planner = planner_of({given(0), given(1)}, small_pool(), found);
  REQUIRE(found.empty());
  const Plan plan = planner->plan(batch_of({250, 80}), 1);
  CHECK(plan.policy == "mine");
  CHECK(plan.step == 1);
  CHECK(plan.micro_batches == given(1).plan.micro_batches);
  CHECK(refusal(*planner, {250, 80}, 2) == "study.yaml:11: 'mine' has no plan for step 2");
  CHECK(refusal(*planner, {250, 81}, 1) ==
        "study.yaml:11: 1.json plans another batch than that of step 1: sequence 1 has 80 tokens in the plan and 81 in "
        "the batch");
}

TEST_CASE("a given plan has the capacity of the pool, or what it needs, and not its own", "[given]") {
  PlanningContext larger = small_pool();
  larger.capacity = 300;  // a rank alone then holds the sequence of 250 tokens
  Diagnostics found;
  const auto planner = planner_of({given(0, larger)}, small_pool(), found);
  REQUIRE(found.empty());
  CHECK(planner->plan(batch_of({250, 80}), 0).capacity == 250);
  const auto roomy = planner_of({given(0)}, larger, found);
  CHECK(roomy->plan(batch_of({250, 80}), 0).capacity == 300);
}

TEST_CASE("a given plan is for the ranks of the pool", "[given]") {
  CHECK(problems_of_pool(given(0, small_pool(4)), small_pool()) ==
        Strings{"plans/0.json: the plan is for 4 HDP ranks, the study has 8"});
}

TEST_CASE("a given plan that offloads needs a host and the same layers", "[given]") {
  GivenPlan plan = given(0);
  plan.plan.micro_batches[0].offload = 0.5;
  PlanningContext pool = small_pool();
  CHECK(problems_of_pool(plan, pool) ==
        Strings{"plans/0.json: micro-batch 0 offloads, but the cluster has no host memory to copy to"});
  pool.host_tokens = 1000;
  pool.work.offload_per_token = 1;
  Diagnostics found;
  CHECK(planner_of({plan}, pool, found) != nullptr);
  pool.layers = 11;
  CHECK(problems_of_pool(plan, pool) ==
        Strings{"plans/0.json: micro-batch 0 offloads a share of 10 layers, a pass of the study has 11"});
  plan.plan.micro_batches[0].offload = 0;  // what is not offloaded has no share
  CHECK(planner_of({plan}, pool, found) != nullptr);
}

TEST_CASE("a given plan with chunks in order needs a pipeline that runs them so", "[given][chunks]") {
  PlanningContext pool = small_pool();
  GivenPlan chunks = given(0);
  chunks.plan = plan_of("chunkflow", pool, {250, 80});
  Diagnostics found;
  CHECK(planner_of({chunks}, pool, found) != nullptr);
  pool.runs_chunks_in_order = false;
  CHECK(problems_of_pool(chunks, pool) ==
        Strings{"plans/0.json: the schedule of the pipeline does not run chunks of a sequence in order"});
}

TEST_CASE("a given plan runs in the waves of expert groups, its own or those that follow", "[given]") {
  PlanningContext pool = small_pool();
  pool.expert_ranks = 4;
  Diagnostics found;
  const Plan waves = planner_of({given(0)}, pool, found)->plan(batch_of({250, 80}), 0);
  CHECK(waves.expert_ranks == 4);
  const Plan again = planner_of({GivenPlan{"0.json", waves}}, pool, found)->plan(batch_of({250, 80}), 0);
  CHECK(again.micro_batches == waves.micro_batches);
  CHECK(problems_of_pool({"0.json", waves}, small_pool()) ==
        Strings{"0.json: the plan is for expert groups of 4 ranks, those of the study have 1"});
}

}  // namespace hdpsim
