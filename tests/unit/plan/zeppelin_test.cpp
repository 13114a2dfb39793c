#include <numeric>
#include <string>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

// Nodes of 4 ranks with 100 tokens each. Attention takes a second a pair; messages take `within` seconds a token and
// hop in a node, `between` elsewhere.
PlanningContext pool_with(std::int64_t ranks, double within, double between) {
  PlanningContext context = small_pool(ranks);
  context.work.per_area = 1;
  context.work.per_token = 0;
  context.work.ranks_per_node = context.ranks_per_node;
  context.work.per_ring_token = between;
  context.work.within_node = RingHops{within, 0};
  return context;
}

TEST_CASE("zeppelin: a sequence goes on as many ranks as its attention hides the messages of", "[plan][zeppelin]") {
  // On N ranks s tokens attend to s (s + 1) / 2N pairs of a rank, and (N - 1) s / N tokens arrive. On 4 ranks attention
  // hides messages if (s + 1) / 2 >= 3 x 5, from 29 tokens on; on 8 ranks if (s + 1) / 2 >= 7 x 6, from 83 on; on 16
  // from 179 on.
  const Plan plan = plan_of("zeppelin", pool_with(16, 5, 6), {28, 29, 82, 83, 178, 179});
  const std::vector<std::size_t> widths = {1, 4, 4, 8, 8, 16};
  for (std::size_t sequence = 0; sequence < widths.size(); ++sequence) {
    CAPTURE(sequence);
    CHECK(micro_batch_of(plan, sequence).group.size() == widths[sequence]);
  }
}

TEST_CASE("zeppelin: a sequence that a zone does not hold goes to a wider one, hidden or not", "[plan][zeppelin]") {
  const Plan plan = plan_of("zeppelin", pool_with(8, 1e9, 1e9), {100, 101, 400, 401});
  CHECK(micro_batch_of(plan, 0).group.size() == 1);
  CHECK(micro_batch_of(plan, 1).group.size() == 4);
  CHECK(micro_batch_of(plan, 2).group.size() == 4);
  CHECK(micro_batch_of(plan, 3).group.size() == 8);
}

TEST_CASE("zeppelin: zones are dealt by tokens, the widest first, each rank runs it first", "[plan][zeppelin]") {
  // 800 tokens on both nodes; 400 and 200 to a node each; 90 to a rank of the node with 200, and 60 to the next.
  const Plan plan = plan_of("zeppelin", pool_with(8, 1e9, 1e9), {60, 800, 200, 90, 400});
  CHECK(ranks_of(micro_batch_of(plan, 4)) == Indices{0, 1, 2, 3});
  CHECK(ranks_of(micro_batch_of(plan, 2)) == Indices{4, 5, 6, 7});
  CHECK(ranks_of(micro_batch_of(plan, 3)) == Indices{4});
  CHECK(ranks_of(micro_batch_of(plan, 0)) == Indices{5});
  const std::vector<MicroBatchId>& of_rank_4 = plan.schedule[4];
  REQUIRE(of_rank_4.size() == 3);
  std::vector<std::size_t> widths;
  for (const MicroBatchId id : of_rank_4) widths.push_back(plan.micro_batches[id.index()].group.size());
  CHECK(widths == std::vector<std::size_t>{8, 4, 1});
}

TEST_CASE("zeppelin: pools of any number of ranks have zones that divide them", "[plan][zeppelin]") {
  for (const std::int64_t ranks : {1, 3, 4, 6, 12, 20, 28}) {
    CAPTURE(ranks);
    const Plan plan = plan_of("zeppelin", pool_with(ranks, 0, 0), {10, 20, 30, 100 * ranks});
    for (const MicroBatch& micro_batch : plan.micro_batches) CHECK(ranks % std::ssize(micro_batch.group) == 0);
  }
}

}  // namespace
}  // namespace hdpsim
