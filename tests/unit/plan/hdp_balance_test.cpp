#include <algorithm>
#include <cmath>

#include "sim/base/random.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

// (slowest - fastest) / slowest over the finish times of the ranks.
double spread(const Plan& plan, const PlanningContext& context) {
  const PlanTime time = time_of(plan, context);
  return 1 - *std::min_element(time.finish.begin(), time.finish.end()) / time.step();
}

// LLaMA-7B on A100-class devices, per HDP rank: attention at 200 TFLOP/s, linear work 2.3 us a token and layer forward,
// a ring step of 8,192 tokens 2.0 + 4.8 ms; derived from the figures of ByteScale (arXiv 2502.21231, section 8).
PlanningContext seven_billion(std::int64_t context_tokens) {
  PlanningContext context;
  context.ranks = 512;
  context.ranks_per_node = 4;
  context.capacity = 8192;
  context.context = context_tokens;
  context.layers = 32;
  context.work.per_area = 3.5 * 4 * 4096 * 32 / 200e12;
  context.work.per_token = 3 * 2.3e-6 * 32;
  context.work.per_micro_batch = 0.05;
  context.work.per_ring_token = 6.8e-3 * 32 / 8192;
  context.work.per_ring_step = 64 * 20e-6;
  context.work.offload_per_token = 1.7e-4;
  context.host_tokens = 65536;
  return context;
}

// 32Mi tokens of documents from 256 tokens to the context, as many tokens in every octave of lengths (density 1 / s^2):
// close to what is published of production data (ByteScale, figure 2).
std::vector<std::int64_t> long_tailed(std::int64_t context, std::uint64_t seed) {
  constexpr double shortest = 256;
  RandomStream random(seed, "lengths");
  std::vector<std::int64_t> lengths;
  std::int64_t left = 32 << 20;
  while (left > 0) {
    const double tail = 1 - random.uniform() * (1 - shortest / static_cast<double>(context));
    lengths.push_back(std::min<std::int64_t>(left, std::llround(shortest / tail)));
    left -= lengths.back();
  }
  return lengths;
}

TEST_CASE("PP-Balance: each wave holds micro-batches of similar time, its longest on the least loaded rank", "[plan]") {
  PlanningContext context = small_pool(4);
  context.stages = 2;
  // Each fills a pack. The second wave's longest goes to the rank with the first wave's shortest.
  const Plan plan = plan_of("hdp-balance: {delta: 0.0001, fallback: false}", context, {99, 98, 97, 96, 95, 94, 93, 92});
  for (const auto& list : plan.schedule) {
    REQUIRE(list.size() == 2);
    const std::size_t first = sequences_of(plan.micro_batches[list[0].index()]).front();
    const std::size_t second = sequences_of(plan.micro_batches[list[1].index()]).front();
    CHECK(first < 4);
    CHECK(first + second == 7);
  }
}

TEST_CASE("PP-Balance is what pipelines get unless the study says otherwise", "[plan]") {
  const std::vector<std::int64_t> lengths = {800, 400, 350, 120, 90, 80, 70, 60, 50, 40, 30, 20};
  PlanningContext context = small_pool(8);
  const auto same = [&](const char* a, const char* b) {
    return plan_of(a, context, lengths).micro_batches == plan_of(b, context, lengths).micro_batches;
  };
  CHECK(same("hdp-balance: {fallback: false}", "hdp-balance: {balance: dp, fallback: false}"));
  CHECK_FALSE(same("hdp-balance: {fallback: false}", "hdp-balance: {balance: pp, fallback: false}"));
  context.stages = 4;
  CHECK(same("hdp-balance: {fallback: false}", "hdp-balance: {balance: pp, fallback: false}"));
}

}  // namespace

TEST_CASE("hdp-balance: longest first onto the least loaded rank", "[plan][balance]") {
  PlanningContext context = small_pool(2);
  // 50, 40, 30, 20, 10 s: 50 | 40, then 40+30, 50+20, and 10 to either of the two at 70.
  const Plan plan = plan_of("hdp-balance: {fallback: false}", context, {10, 20, 30, 40, 50});
  const PlanTime time = time_of(plan, context);
  CHECK(time.finish == std::vector<double>{80, 70});
  CHECK(ranks_of(micro_batch_of(plan, 4)) == Indices{0});
  CHECK(ranks_of(micro_batch_of(plan, 3)) == Indices{1});
  CHECK(ranks_of(micro_batch_of(plan, 2)) == Indices{1});
}

TEST_CASE("hdp-balance: ranks with costly sequences get fewer tokens", "[plan][balance]") {
  PlanningContext context = small_pool(2);
  context.work = {};
  context.work.per_area = 1;
  // The area of 100 tokens is 5050; 8 sequences of 35 have 8 x 630 = 5040.
  const Plan plan = plan_of("hdp-balance: {fallback: false}", context, {35, 35, 35, 35, 100, 35, 35, 35, 35});
  CHECK(time_of(plan, context).finish == std::vector<double>{5050, 5040});
}

TEST_CASE("hdp-balance: a rank's short sequences are packed to C, and every micro-batch costs its fixed time",
          "[plan][balance]") {
  PlanningContext context = small_pool(1);
  context.work.per_micro_batch = 7;
  const Plan plan = plan_of("hdp-balance: {fallback: false}", context, {60, 50, 45, 40});
  REQUIRE(plan.micro_batches.size() == 2);
  CHECK(sequences_of(plan.micro_batches[0]) == Indices{0, 3});
  CHECK(sequences_of(plan.micro_batches[1]) == Indices{1, 2});
  CHECK(time_of(plan, context).step() == 195 + 2 * 7);
}

TEST_CASE("hdp-balance: a ring takes whole nodes, or one part of a node", "[plan][balance]") {
  const std::vector<std::int64_t> lengths{300, 400};
  const Plan node_first = plan_of("hdp-balance: {fallback: false}", small_pool(), lengths);
  CHECK(ranks_of(micro_batch_of(node_first, 1)) == Indices{0, 1, 2, 3});
  CHECK(ranks_of(micro_batch_of(node_first, 0)) == Indices{4, 5, 6});

  const std::vector<std::int64_t> straddling{500, 200, 190};  // rank 5 is left of node 1, and ranks 6 and 7
  CHECK(ranks_of(micro_batch_of(plan_of("hdp-balance: {placement: any, fallback: false}", small_pool(), straddling),
                                1)) == Indices{5, 6});
}

TEST_CASE("hdp-balance: node-first keeps a ring of a node's size out of the remainders of others", "[plan][balance]") {
  PlanningContext context = small_pool(12);
  context.work.per_area = 1;
  const std::vector<std::int64_t> lengths{600, 390};  // six ranks, then four: ranks 6 and 7 remain of node 1
  CHECK(ranks_of(micro_batch_of(plan_of("hdp-balance: {fallback: false}", context, lengths), 1)) ==
        Indices{8, 9, 10, 11});
  CHECK(ranks_of(micro_batch_of(plan_of("hdp-balance: {placement: any, fallback: false}", context, lengths), 1)) ==
        Indices{6, 7, 8, 9});
}

TEST_CASE("hdp-balance: too few targets are joined by the least loaded ranks", "[plan][balance]") {
  PlanningContext context = small_pool();
  context.work = {};
  context.work.per_area = 1;
  // 600 on six ranks, then 500 on five: two targets are idle, and the ring must wait for the others anyway. It takes
  // five of those that wait least, so that the idle two are free for four times 200: 4 x 10,050 s beside 30,050 +
  // 25,050 s.
  const Plan plan = plan_of("hdp-balance: {placement: any, fallback: false}", context, {600, 500, 200, 200, 200, 200});
  CHECK(ranks_of(micro_batch_of(plan, 0)) == Indices{0, 1, 2, 3, 4, 5});
  CHECK(ranks_of(micro_batch_of(plan, 1)) == Indices{0, 1, 2, 3, 4});
  CHECK(ranks_of(micro_batch_of(plan, 2)) == Indices{6, 7});
  CHECK(ranks_of(micro_batch_of(plan, 4)) == Indices{6, 7});
}

TEST_CASE("hdp-balance: of two plans of one length, that in which the ranks end together is taken", "[plan][balance]") {
  PlanningContext context = small_pool();
  context.work = {};
  context.work.per_area = 1;
  // The step is 600's and 500's rings, one after the other, whoever runs the second. With the idle ranks in it, the
  // first rank is done at 30,050 s; without them, at 0.
  const Plan plan = plan_of("hdp-balance: {fallback: false}", context, {600, 500});
  CHECK(ranks_of(micro_batch_of(plan, 1)) == Indices{0, 1, 2, 6, 7});
}

TEST_CASE("hdp-balance: short sequences fill the room that ceil(s / C) leaves in a ring", "[plan][balance]") {
  PlanningContext context = small_pool();
  context.capacity = 2000;
  context.context = 16000;
  context.work.per_micro_batch = 10;
  // Two ranks for 3000 leave room for 1000. 900 is the longest that fits; 512 = 2 ranks x 2 parts x 128 rows would be
  // the least, so that the 80 left over stay empty.
  const Plan plan = plan_of("hdp-balance: {fallback: false}", context, {3000, 1100, 900, 80});
  CHECK(sequences_of(micro_batch_of(plan, 0)) == Indices{0, 2});
  CHECK(micro_batch_of(plan, 1).group.size() == 1);
  CHECK(micro_batch_of(plan, 3).group.size() == 1);
  const Plan apart = plan_of("hdp-balance: {pack_groups: false, fallback: false}", context, {3000, 1100, 900, 80});
  CHECK(sequences_of(micro_batch_of(apart, 0)) == Indices{0});
}

TEST_CASE("hdp-balance: nothing joins a ring in which it would cost more than alone", "[plan][balance]") {
  PlanningContext context = small_pool();
  context.capacity = 2000;
  context.context = 16000;
  context.work.per_ring_token = 100;  // the ring is bound by its transfers: every token shows
  CHECK(sequences_of(micro_batch_of(plan_of("hdp-balance: {fallback: false}", context, {3000, 900}), 0)) == Indices{0});
}

TEST_CASE("hdp-balance: widen lets a sequence that bounds the step use idle ranks", "[plan][balance]") {
  PlanningContext context = small_pool();
  context.work = {};
  context.work.per_area = 1;
  const std::vector<std::int64_t> lengths{400, 20};
  CHECK(micro_batch_of(plan_of("hdp-balance: {fallback: false}", context, lengths), 0).group.size() == 4);
  CHECK(micro_batch_of(plan_of("hdp-balance: {widen: true, fallback: false}", context, lengths), 0).group.size() == 8);
  // A transfer of 50.125 s a token: (D - 1) x 50.125 x 400 / D <= 80200 / D up to D = 5.
  context.work.per_ring_token = 80200.0 / 4 / 400;
  CHECK(micro_batch_of(plan_of("hdp-balance: {widen: true, fallback: false}", context, lengths), 0).group.size() == 5);
}

TEST_CASE("hdp-balance: widen changes nothing when every sequence fits the balanced share", "[plan][balance]") {
  const std::vector<std::int64_t> lengths{200, 200, 200, 200, 200, 200, 200, 200};
  CHECK(plan_of("hdp-balance: {widen: true, fallback: false}", small_pool(), lengths) ==
        plan_of("hdp-balance: {fallback: false}", small_pool(), lengths));
}

TEST_CASE("hdp-balance: offload takes fewer ranks, but never longer than the balanced share", "[plan][balance]") {
  PlanningContext context = seven_billion(1 << 20);
  const std::vector<std::int64_t> lengths = long_tailed(1 << 20, 1);
  const Plan plain = plan_of("hdp-balance", context, lengths);
  const Plan offloaded = plan_of("hdp-balance: {offload: auto}", context, lengths);
  const auto group_sum = [](const Plan& plan) {
    std::size_t sum = 0;
    for (const MicroBatch& micro_batch : plan.micro_batches) sum += micro_batch.group.size();
    return sum;
  };
  CHECK(group_sum(offloaded) < group_sum(plain));
  CHECK(time_of(offloaded, context).step() <= time_of(plain, context).step());
}

TEST_CASE("hdp-balance: ranks finish within 3 % of each other", "[plan][balance]") {
  for (const std::int64_t tokens : {1 << 18, 1 << 19, 1 << 20, 1 << 21}) {
    for (const char* policy : {"hdp-balance", "hdp-balance: {offload: auto}", "hdp-balance: {widen: true}"}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        INFO("replay: context " << tokens << " seed " << seed << " " << policy);
        const PlanningContext context = seven_billion(tokens);
        CHECK(spread(plan_of(policy, context, long_tailed(tokens, seed)), context) < 0.03);
      }
    }
  }
}

TEST_CASE("hdp-balance: the step is within 10 % of the work spread evenly", "[plan][balance]") {
  const PlanningContext context = seven_billion(1 << 20);
  const PlanTime time = time_of(plan_of("hdp-balance", context, long_tailed(1 << 20, 2)), context);
  double busy = 0;
  for (const double seconds : time.busy) busy += seconds;
  CHECK(time.step() < 1.1 * busy / 512);
}

TEST_CASE("hdp-balance beats hdp-naive, which beats nobody at looking at loads", "[plan][balance]") {
  const PlanningContext context = seven_billion(1 << 20);
  const auto lengths = long_tailed(1 << 20, 3);
  CHECK(time_of(plan_of("hdp-balance", context, lengths), context).step() <
        0.8 * time_of(plan_of("hdp-naive", context, lengths), context).step());
}

TEST_CASE("hdp-balance: a rank that is known to be slow gets no ring and ends with the others", "[plan][balance]") {
  PlanningContext context = small_pool(4);
  context.rank_speeds = [](std::int64_t step) { return std::vector<double>{1, step < 1 ? 1.0 : 0.5, 1, 1}; };
  std::vector<std::int64_t> lengths(35, 10);
  lengths.push_back(200);
  const auto policy = planner("hdp-balance: {pack_groups: false, fallback: false}", context);
  const Plan even = policy->plan(batch_of(lengths), 0);
  const Plan aware = policy->plan(batch_of(lengths), 1);
  const auto tokens_of = [](const Plan& plan, std::size_t rank) {
    std::int64_t tokens = 0;
    for (const MicroBatchId id : plan.schedule[rank]) tokens += plan.micro_batches[id.index()].tokens_per_rank();
    return tokens;
  };
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(std::abs(tokens_of(even, rank) - 550 / 4) <= 10);
  // 550 tokens over speeds that sum to 3.5: a step of 157 seconds, of which the slow rank does 79 tokens.
  CHECK(std::abs(tokens_of(aware, 1) - 79) <= 10);
  for (const std::size_t rank : {0, 2, 3}) CHECK(std::abs(tokens_of(aware, rank) - 157) <= 10);
  for (const MicroBatch& micro_batch : aware.micro_batches) {
    if (micro_batch.group.size() == 1) continue;
    for (const std::size_t rank : ranks_of(micro_batch)) CHECK(rank != 1);
  }
}

TEST_CASE("hdp-balance falls back on a plan that looks at no load where its model takes that for shorter",
          "[plan][balance]") {
  PlanningContext context = small_pool(2);
  // 50 + 20 + 10 and 40 + 30 s; a ring of both ranks, whose messages cost nothing, has 75 s on each.
  const std::vector<std::int64_t> lengths{10, 20, 30, 40, 50};
  const auto step = [&](const char* entry) { return time_of(plan_of(entry, context, lengths), context).step(); };
  CHECK(step("hdp-balance: {fallback: false}") == 80);
  CHECK(step("hdp-balance") == 75);
  CHECK(plan_of("hdp-balance", context, lengths).policy == "hdp-balance");
  context.work.per_ring_step = 10;
  CHECK(step("hdp-balance") == 80);
}

TEST_CASE("hdp-balance without balance is hdp-naive, and without groups by length the static mesh", "[plan][balance]") {
  const std::vector<std::int64_t> lengths{300, 100, 50, 400, 20, 10, 250, 30};
  const auto same = [&](const std::string& one, const std::string& other) {
    return plan_of(one, small_pool(), lengths) == plan_of(other, small_pool(), lengths);
  };
  CHECK(same("hdp-balance: {balance: none}", "hdp-naive"));
  CHECK(same("hdp-balance: {groups: uniform}", "static"));
  CHECK(same("hdp-naive: {groups: uniform}", "static"));
  CHECK_FALSE(same("hdp-balance", "hdp-naive"));
  CHECK(same("hdp-balance: {groups: by_length}", "hdp-balance"));
}

}  // namespace hdpsim
