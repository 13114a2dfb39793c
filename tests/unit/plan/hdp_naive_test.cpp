#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {

TEST_CASE("hdp: a sequence of s tokens gets ceil(s / C) ranks, any number", "[plan][hdp]") {
  PlanningContext context = small_pool();
  context.ranks = 512;
  context.capacity = 8192;
  context.context = 2 << 20;
  const std::vector<std::int64_t> lengths{8191, 8192, 8193, 24577, 312 * 1024, 2 << 20};
  for (const char* policy : {"hdp-naive", "hdp-balance: {pack_groups: false, search: none}"}) {
    const Plan plan = plan_of(policy, context, lengths);
    const std::vector<std::size_t> degrees{1, 1, 2, 4, 39, 256};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      INFO(policy << " " << lengths[i]);
      CHECK(micro_batch_of(plan, i).group.size() == degrees[i]);
    }
  }
}

TEST_CASE("hdp-naive looks at no load: the ranks of a long sequence get as much as the others", "[plan][naive]") {
  PlanningContext context = small_pool();
  context.work.per_area = 1;
  std::vector<std::int64_t> lengths{400};
  lengths.insert(lengths.end(), 12, 100);
  const Plan plan = plan_of("hdp-naive", context, lengths);
  for (const auto& list : plan.schedule) CHECK(list.size() == 2);
}

TEST_CASE("hdp-naive: offload keeps micro-batches within the mean of the step", "[plan][naive]") {
  PlanningContext context = small_pool();  // 1 s a token
  context.work.offload_per_token = 0.01;
  context.host_tokens = 1'000'000;
  // 3,200 tokens on 8 ranks: 400 s each in four micro-batches of 100 s. A sequence of 100 tokens a rank takes just
  // that, so that no D may shrink, although memory would let it.
  const std::vector<std::int64_t> lengths(8, 400);
  for (const MicroBatch& micro_batch : plan_of("hdp-naive: {offload: auto}", context, lengths).micro_batches) {
    CHECK(micro_batch.group.size() == 4);
    CHECK(micro_batch.offload == 0);
  }
  // A batch with costly attention in one sequence lengthens the mean: the others may then take fewer ranks. They do
  // where a fragment costs more than that saves: 11,475 s alone, 5,737 s and a step of a ring on two ranks.
  context.work.per_area = 1;
  const auto ranks_of_second = [&] {
    return micro_batch_of(plan_of("hdp-naive: {offload: auto}", context, {800, 150, 150}), 1).group.size();
  };
  CHECK(ranks_of_second() == 2);
  context.work.step_fixed = 8000;
  CHECK(ranks_of_second() == 1);
}

}  // namespace hdpsim
