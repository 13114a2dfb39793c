#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {

TEST_CASE("static: cp auto is the smallest divisor of the pool that holds the context", "[plan][static]") {
  PlanningContext context = small_pool();
  context.context = 250;  // three ranks of 100 would do, but 8 ranks divide by 1, 2, 4 and 8 only
  CHECK(ranks_of(plan_of("static", context, {250}).micro_batches[0]) == Indices{0, 1, 2, 3});
  context.context = 200;
  CHECK(ranks_of(plan_of("static: {cp: auto}", context, {200}).micro_batches[0]) == Indices{0, 1});
  context.context = 201;
  CHECK(plan_of("static", context, {1}).micro_batches[0].group.size() == 4);
}

TEST_CASE("static: packs go round the data-parallel groups, every pack over all ranks of its group", "[plan][static]") {
  PlanningContext context = small_pool();
  context.context = 400;
  const Plan plan = plan_of("static: {cp: 4}", context, {400, 390, 380, 370, 360});
  REQUIRE(plan.micro_batches.size() == 5);
  CHECK(ranks_of(plan.micro_batches[0]) == Indices{0, 1, 2, 3});
  CHECK(ranks_of(plan.micro_batches[1]) == Indices{4, 5, 6, 7});
  CHECK(plan.schedule[0].size() == 3);
  CHECK(plan.schedule[7].size() == 2);
}

TEST_CASE("static: short sequences are packed up to the context, not up to what the ranks could hold",
          "[plan][static]") {
  PlanningContext context = small_pool();
  context.context = 150;  // on 2 ranks of 100
  const Plan plan = plan_of("static", context, {90, 80, 60, 70});
  REQUIRE(plan.micro_batches.size() == 2);
  CHECK(sequences_of(plan.micro_batches[0]) == Indices{0, 2});
  CHECK(sequences_of(plan.micro_batches[1]) == Indices{1, 3});
}

TEST_CASE("static: order descending deals the packs by their longest sequence", "[plan][static]") {
  PlanningContext context = small_pool();
  context.context = 400;
  const std::vector<std::int64_t> lengths{200, 300, 400};
  CHECK(sequences_of(plan_of("static: {order: data}", context, lengths).micro_batches[0]) == Indices{0});
  CHECK(sequences_of(plan_of("static: {order: descending}", context, lengths).micro_batches[0]) == Indices{2});
}

TEST_CASE("static: a larger cp than needed is the user's choice", "[plan][static]") {
  CHECK(plan_of("static: {cp: 8}", small_pool(), {10}).micro_batches[0].group.size() == 8);
}

TEST_CASE("an empty batch is an empty plan with a list for every rank", "[plan]") {
  for (const std::string& policy : policy_names()) {
    const Plan plan = plan_of(policy, small_pool(), {});
    CHECK(plan.micro_batches.empty());
    CHECK(plan.schedule.size() == 8);
  }
}

TEST_CASE("static: next_fit packs and deals in the order of the data, and takes no other order", "[plan][static]") {
  const PlanningContext context = small_pool(2);
  const Plan plan = plan_of("static: {cp: 2, packing: next_fit}", context, {120, 90, 80, 110});
  REQUIRE(plan.micro_batches.size() == 3);  // 120, 90 + 80 and 110; best fit makes two of 200
  CHECK(sequences_of(plan.micro_batches[1]) == Indices{1, 2});
  CHECK(plan_of("static: {cp: 2}", context, {120, 90, 80, 110}).micro_batches.size() == 2);
  CHECK_THAT(problems_of_entry("static: {packing: next_fit, order: descending}", context),
             Catch::Contains("'order' is descending, but next_fit fills packs"));
}

}  // namespace hdpsim
