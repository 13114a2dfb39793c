#include "sim/plan/plan_time.h"

#include "sim/base/check.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {

TEST_CASE("plan time: a ring waits for its last rank, and what follows waits for the ring", "[plan][time]") {
  Plan plan;
  plan.ranks = 3;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {30, 80, 10};
  plan.micro_batches = {{.group = {HdpRank(0)}, .spans = {{SequenceId(0), 0, 30}}},
                        {.group = {HdpRank(0), HdpRank(1)}, .spans = {{SequenceId(1), 0, 80}}},
                        {.group = {HdpRank(1)}, .spans = {{SequenceId(2), 0, 10}}}};
  const MicroBatchId first(0);
  const MicroBatchId ring(1);
  const MicroBatchId last(2);
  plan.schedule = {{first, ring}, {ring, last}, {}};
  WorkModel work;
  work.per_token = 1;
  const PlanTime time = plan_time(plan, work);
  CHECK(time.finish == std::vector<double>{30 + 40, 30 + 40 + 10, 0});
  CHECK(time.busy == std::vector<double>{30 + 40, 40 + 10, 0});
  CHECK(time.step() == 80);
}

TEST_CASE("the work model is fixed time, linear time and the slower of attention and transfers", "[plan][time]") {
  const WorkModel work{.per_area = 2, .per_token = 3, .per_micro_batch = 5, .per_ring_token = 7, .per_ring_step = 11};
  // 8 tokens and area 36 on 4 ranks: 2 tokens each; attention 2 x 9, three hops of 11 + 7 x 2.
  CHECK(work.seconds(36, 8, 4) == 5 + 3 * 2 + 3 * (11 + 7 * 2));
  CHECK(work.seconds(3600, 8, 4) == 5 + 3 * 2 + 2 * 900);
  CHECK(work.seconds(36, 8, 1) == 5 + 3 * 8 + 2 * 36);
  CHECK(work.forward_seconds(7, 9) == Approx(2 * 7 * 2 / 7.0 + 3 * 9 / 3.0));
}

}  // namespace hdpsim
