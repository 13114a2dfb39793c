#include "sim/plan/plan_time.h"

#include "sim/base/check.h"
#include "sim/model/group_sharing.h"
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
  const PlanTime time = plan_time(plan, test::with_plain_rings(work));
  CHECK(time.finish == std::vector<double>{30 + 40, 30 + 40 + 10, 0});
  CHECK(time.busy == std::vector<double>{30 + 40, 40 + 10, 0});
  CHECK(time.step() == 80);
}

TEST_CASE("plan time: a group whose ranks have unequal attention takes as long as the busiest", "[plan][time][cut]") {
  // Chunks of 4 tokens; rank 0 has the document of 4 and the last third of that of 12, 10 + 42 of 88 pairs.
  Plan plan;
  plan.ranks = 2;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {4, 12};
  plan.micro_batches = {{.group = {HdpRank(0), HdpRank(1)}, .spans = {{SequenceId(0), 0, 4}, {SequenceId(1), 0, 12}}}};
  plan.schedule = {{MicroBatchId(0)}, {MicroBatchId(0)}};
  WorkModel work;
  work.per_area = 1;
  CHECK(plan_time(plan, test::with_plain_rings(work)).step() == Approx(44));
  plan.micro_batches[0].cut = TokenCut::per_pack;
  CHECK(plan_time(plan, test::with_plain_rings(work)).step() == Approx(52));
}

TEST_CASE("each message of a ring hides behind one step of its own direction", "[plan][time]") {
  // Blocks of 4 pairs take a second a pair, where they need another rank's keys two; messages take shares of 20 s.
  const RingPass forward{
      .own = {.per_area = 1}, .step = {.per_area = 2}, .last_step = {.per_area = 2}, .first = {0, 0.3}};
  RingPass backward = forward;
  backward.between = {0, 0.7};
  backward.beside_last = {0, 0.6};
  backward.behind = {0, 0.4};
  const RingHops hop{0, 20};
  // A first step of 4 s beside 6 s, two between them without messages, and the last.
  CHECK(forward.seconds(4, 1, 4, hop) == Approx(6 + 2 * 8 + 8));
  // Messages of 14 s are longer than the steps between, the last message beside a step, of 12 s, than the last step.
  CHECK(backward.seconds(4, 1, 4, hop) == Approx(6 + 2 * 14 + 12 + 8));
  CHECK(backward.seconds(4, 1, 2, hop) == Approx(6 + 12 + 8));
  const WorkModel work{.per_token = 5, .per_ring_step = 20, .passes = RingPasses{forward, backward, 3, 100}};
  CHECK(work.seconds(64, 4, 4) == Approx(100 + 3 + forward.seconds(4, 1, 4, hop) + backward.seconds(4, 1, 4, hop)));
  CHECK(work.seconds(64, 4, 1) == 4 * 5);
}

TEST_CASE("a group that may choose takes the way that takes it least, and one that has chosen that way",
          "[plan][time]") {
  // A hop costs 10 s, whatever it carries; gathering costs 3 s a token of another rank.
  const RingPass gathered{.step = {.per_token = 3}, .last_step = {.per_token = 3}};
  WorkModel ring = test::with_plain_rings({.per_token = 5, .per_ring_step = 10});
  const WorkModel gather{.passes = {gathered, {}, 5, 0}, .ranks_share = true, .exchange = KeyExchange::all_gather};
  CHECK(ring.fastest(0, 4, 2, false) == std::nullopt);
  ring.others = {gather};
  CHECK(gather.seconds(0, 4, 2) == Approx(10 + 6));
  CHECK(gather.seconds(0, 40, 2) == Approx(100 + 60));
  CHECK(ring.fastest(0, 4, 2, false) == KeyExchange::all_gather);
  CHECK(ring.fastest(0, 40, 2, false) == std::nullopt);
  CHECK(ring.seconds(0, 4, 2) == gather.seconds(0, 4, 2));
  CHECK(ring.seconds(0, 40, 2) == ring.in({}).seconds_in_this_way(0, 40, 2, false));
  Plan plan;
  plan.ranks = 2;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {40};
  plan.micro_batches = {{.group = {HdpRank(0), HdpRank(1)}, .spans = {{SequenceId(0), 0, 40}}}};
  plan.schedule = {{MicroBatchId(0)}, {MicroBatchId(0)}};
  CHECK(plan_time(plan, ring).step() == ring.seconds(0, 40, 2));
  plan.micro_batches[0].exchange = KeyExchange::all_gather;
  CHECK(plan_time(plan, ring).step() == gather.seconds(0, 40, 2));
}

TEST_CASE("ranks that trade heads are joined by a ring of as many steps as there are parties", "[plan][time]") {
  CHECK(ranks_that_trade(12, 8, 0) == 4);
  CHECK(ranks_that_trade(12, 8, 3) == 2);
  CHECK(ranks_that_trade(8, 8, 0) == 8);
  // Steps of a second for each pair of a whole head; a hop takes 10 s; trading all of a rank's tokens 4 s a token.
  const RingPass steps{
      .own = {.per_area = 1}, .step = {.per_area = 1}, .last_step = {.per_area = 1}, .between = {0, 1}};
  const RingPass trades{.own = {.per_area = 1}, .traded = {.per_token = 4}};
  WorkModel work{.per_ring_step = 10, .passes = {trades, {}, 0, 0}, .ranks_share = true};
  work.exchange = KeyExchange::all_to_all;
  work.traders = RingsOfTraders{.heads = 4, .most = 0, .ring = {steps, {}, 0, 7}};
  // Twelve ranks are three parties of four. A step has the pairs of a third of the tokens with another third, in a
  // quarter of the heads: 288 / 9 / 4. The one between takes as long as its hop. Of what is traded a quarter stays.
  CHECK(work.seconds(288, 24, 12) == Approx(7 + 8 + 10 + 8 + 0.75 * 4 * 2));
  // Four ranks trade all there is, and have no ring.
  CHECK(work.seconds(16, 8, 4) == Approx(1 + 0.75 * 4 * 2));
}

TEST_CASE("the work model is fixed time, linear time and, step by step of a ring, the slower of attention and messages",
          "[plan][time]") {
  const WorkModel work = test::with_plain_rings(
      {.per_area = 2, .per_token = 3, .per_micro_batch = 5, .per_ring_token = 7, .per_ring_step = 11});
  // 8 tokens and area 36 on 4 ranks: 2 tokens each; four steps of attention of 2 x 36 / 16, of which all but the last
  // have a hop of 11 + 7 x 2 beside them.
  CHECK(work.seconds(36, 8, 4) == 5 + 3 * 2 + 3 * (11 + 7 * 2) + 2 * 36 / 16.0);
  CHECK(work.seconds(3600, 8, 4) == 5 + 3 * 2 + 2 * 900);
  CHECK(work.seconds(36, 8, 1) == 5 + 3 * 8 + 2 * 36);
  CHECK(work.forward_seconds(7, 9) == Approx(2 * 7 * 2 / 7.0 + 3 * 9 / 3.0));
}

}  // namespace hdpsim
