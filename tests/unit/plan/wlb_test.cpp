#include <algorithm>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {

TEST_CASE("wlb: micro-batches have even work, not even tokens", "[plan][wlb]") {
  // Two replicas of one rank. Attention alone counts: 80 tokens are 3240 pairs, ten of 10 are 550.
  PlanningContext context = small_pool(2);
  context.context = 100;
  context.work.per_token = 0;
  context.work.per_area = 1;
  std::vector<std::int64_t> lengths(10, 10);
  lengths.push_back(80);
  const Plan plan = plan_of("wlb", context, lengths);
  REQUIRE(plan.micro_batches.size() == 2);
  CHECK(plan.micro_batches[0].tokens() == 80);
  CHECK(plan.micro_batches[1].tokens() == 100);
}

TEST_CASE("wlb: where the micro-batch of least work is full, the one of fewest tokens is taken", "[plan][wlb]") {
  // As before with eleven of 10: the eleventh does not fit beside the others, but beside 80.
  PlanningContext context = small_pool(2);
  context.context = 100;
  context.work.per_token = 0;
  context.work.per_area = 1;
  std::vector<std::int64_t> lengths(11, 10);
  lengths.push_back(80);
  const Plan plan = plan_of("wlb", context, lengths);
  REQUIRE(plan.micro_batches.size() == 2);
  CHECK(plan.micro_batches[0].tokens() == 90);
}

TEST_CASE("wlb: replicas get as many micro-batches as hold the batch, each on all ranks of the replica",
          "[plan][wlb]") {
  PlanningContext context = small_pool(4);
  context.context = 200;
  const Plan plan = plan_of("wlb: {cp: 2}", context, {200, 150, 150, 100});  // 600 of 2 x 200 tokens: two rounds
  REQUIRE(plan.micro_batches.size() == 4);
  CHECK(ranks_of(plan.micro_batches[0]) == Indices{0, 1});
  CHECK(ranks_of(plan.micro_batches[1]) == Indices{2, 3});
  CHECK(plan.schedule[0].size() == 2);
}

}  // namespace hdpsim
