#include "sim/plan/impl/grouped_pool.h"

#include <vector>

#include "sim/plan/plan_check.h"
#include "sim/plan/plan_time.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Sizes = std::vector<std::int64_t>;

PlanningContext pool_of(std::int64_t ranks, std::int64_t per_node) {
  PlanningContext context = small_pool(ranks);
  context.ranks_per_node = context.work.ranks_per_node = per_node;
  return context;
}

}  // namespace

TEST_CASE("groups: those that nodes are made of, or that are made of nodes", "[plan][groups]") {
  CHECK(group_sizes(pool_of(16, 4)) == Sizes{1, 2, 4, 8, 16});
  CHECK(group_sizes(pool_of(24, 8)) == Sizes{1, 2, 4, 8, 24});
  CHECK(group_sizes(pool_of(6, 1)) == Sizes{1, 2, 3, 6});
}

TEST_CASE("groups: a pool of groups takes what its ranks take together", "[plan][groups]") {
  const PlanningContext context = pool_of(16, 4);
  const Batch batch = batch_of({400, 200, 200});
  const PlanningContext groups = in_groups(context, 4, OrderedBatch(batch, 0));
  CHECK(groups.ranks == 4);
  CHECK(groups.ranks_per_node == 1);
  CHECK(groups.capacity == 4 * context.capacity);
  for (const std::int64_t degree : {2, 4}) {
    CHECK(groups.work.seconds(80000, 400, degree) == Approx(context.work.seconds(80000, 400, 4 * degree)));
  }
  CHECK(groups.work.seconds(0, 400, 1) == Approx(context.work.seconds(0, 400, 4, true)));
}

TEST_CASE("groups: their plan is one of ranks", "[plan][groups]") {
  const PlanningContext context = pool_of(8, 4);
  const std::vector<std::int64_t> lengths{100, 300, 20, 50};
  const PlanningContext groups = in_groups(context, 2, OrderedBatch(batch_of(lengths), 0));
  const Plan of_groups = plan_of("hdp-balance: {search: none}", groups, lengths);
  const Plan plan = on_ranks(of_groups, 2, context);
  CHECK(check_plan(plan).empty());
  CHECK(plan.ranks == 8);
  REQUIRE(plan.micro_batches.size() == of_groups.micro_batches.size());
  for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) {
    CHECK(plan.micro_batches[i].spans == of_groups.micro_batches[i].spans);
    CHECK(plan.micro_batches[i].group.size() == 2 * of_groups.micro_batches[i].group.size());
  }
}

}  // namespace hdpsim
