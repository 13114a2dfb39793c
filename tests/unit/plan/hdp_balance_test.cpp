#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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
  const Plan plan = plan_of("hdp-balance: {delta: 0.0001, search: none}", context, {99, 98, 97, 96, 95, 94, 93, 92});
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
  CHECK(same("hdp-balance: {search: none}", "hdp-balance: {balance: dp, search: none}"));
  CHECK_FALSE(same("hdp-balance: {search: none}", "hdp-balance: {balance: pp, search: none}"));
  context.stages = 4;
  CHECK(same("hdp-balance: {search: none}", "hdp-balance: {balance: pp, search: none}"));
}

}  // namespace

TEST_CASE("hdp-balance: widen changes nothing when every sequence fits the balanced share", "[plan][balance]") {
  const std::vector<std::int64_t> lengths{200, 200, 200, 200, 200, 200, 200, 200};
  CHECK(plan_of("hdp-balance: {widen: true, search: none}", small_pool(), lengths) ==
        plan_of("hdp-balance: {search: none}", small_pool(), lengths));
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

TEST_CASE("hdp-balance: a rank that is known to be slow gets no ring and ends with the others", "[plan][balance]") {
  PlanningContext context = small_pool(4);
  context.rank_speeds = [](std::int64_t step) { return std::vector<double>{1, step < 1 ? 1.0 : 0.5, 1, 1}; };
  std::vector<std::int64_t> lengths(35, 10);
  lengths.push_back(200);
  const auto policy = planner("hdp-balance: {pack_groups: false, search: none}", context);
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

TEST_CASE("PP-Balance: a rank that is known to be slow gets as much as it is of the speed of all", "[plan][balance]") {
  PlanningContext context = small_pool(4);
  context.stages = 2;
  context.rank_speeds = [](std::int64_t /*step*/) { return std::vector<double>{1, 0.5, 1, 1}; };
  // 28 packs that fill a rank, over speeds that sum to 3.5: eight on each of the others, four on the slow one.
  const Plan plan = plan_of("hdp-balance: {search: none}", context, std::vector<std::int64_t>(28, 100));
  CHECK(plan.schedule[1].size() == 4);
  for (const std::size_t rank : {0, 2, 3}) CHECK(plan.schedule[rank].size() == 8);
}

TEST_CASE("PP-Balance: a rank that is known to be slow has packs of its own and is in no ring", "[plan][balance]") {
  PlanningContext context = small_pool(5);
  context.stages = 2;
  context.rank_speeds = [](std::int64_t /*step*/) { return std::vector<double>{1, 1, 0.5, 1, 1}; };
  // 4,500 tokens, of which a ninth is for a speed of 0.5 of 4.5: ten sequences of 50. The rings take all fast ranks.
  std::vector<std::int64_t> lengths((4500 - 800) / 50, 50);
  lengths.insert(lengths.end(), {400, 400});
  const Plan plan = plan_of("hdp-balance: {search: none}", context, lengths);
  std::size_t held = 0;
  for (const MicroBatchId id : plan.schedule[2]) {
    const MicroBatch& micro_batch = plan.micro_batches[id.index()];
    CHECK(micro_batch.group.size() == 1);
    held += micro_batch.spans.size();
  }
  CHECK(held == 10);
}

TEST_CASE("hdp-balance takes the plan of another construction where its model takes that for shorter",
          "[plan][balance]") {
  PlanningContext context = small_pool(2);
  // 50 + 20 + 10 and 40 + 30 s; a ring of both ranks, whose messages cost nothing, has 75 s on each.
  const std::vector<std::int64_t> lengths{10, 20, 30, 40, 50};
  const auto step = [&](const char* entry) { return time_of(plan_of(entry, context, lengths), context).step(); };
  CHECK(step("hdp-balance: {search: none}") == 80);
  CHECK(step("hdp-balance") == 75);
  CHECK(plan_of("hdp-balance", context, lengths).policy == "hdp-balance");
  context.work.per_ring_step = 10;
  CHECK(step("hdp-balance") == 80);
}

TEST_CASE("hdp-balance simulates no plan whose last ranks alone take longer than the best", "[plan][balance]") {
  PlanningContext context = small_pool(8);
  context.work.per_ring_step = 1;
  std::vector<std::int64_t> lengths;
  for (std::int64_t tokens = 5; tokens <= 200; tokens += 3) lengths.push_back(tokens);
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::int64_t wholes = 0;
  std::int64_t parts = 0;
  double least_whole = std::numeric_limits<double>::infinity();
  // Groups take longer than the work model says.
  const auto simulated = [&](const Plan& plan) {
    PlanClock clock(plan.schedule.size());
    for (const MicroBatch& each : plan.micro_batches) {
      const double more = each.group.size() > 1 ? 1.05 : 1;
      clock.run(each.group, more * micro_batch_seconds(each, plan.layers, context.work));
    }
    return clock.time().step();
  };
  PlanningContext asking = context;
  asking.simulated_seconds = [&](const Plan& plan) {
    std::int64_t tokens = 0;
    for (const MicroBatch& each : plan.micro_batches) tokens += each.tokens();
    const double seconds = simulated(plan);
    if (tokens == all) least_whole = std::min(least_whole, seconds);
    ++(tokens == all ? wholes : parts);
    return seconds;
  };
  const Plan plan = plan_of("hdp-balance", asking, lengths);
  CHECK(simulated(plan) == least_whole);
  CHECK(wholes >= 1);
  CHECK(wholes < parts);
  CHECK(simulated(plan) <= simulated(plan_of("hdp-balance: {search: none}", context, lengths)));
}

TEST_CASE("hdp-balance: an option of the algorithm means the algorithm alone, unless a search is asked for",
          "[plan][balance]") {
  const std::vector<std::int64_t> lengths{10, 20, 30, 40, 50};
  const auto step = [&](const char* entry) {
    return time_of(plan_of(entry, small_pool(2), lengths), small_pool(2)).step();
  };
  CHECK(step("hdp-balance: {widen: false}") == 80);
  CHECK(step("hdp-balance: {widen: false, search: own}") == 75);
}

TEST_CASE("hdp-balance: simulated steps decide among plans that the work model takes for equally long",
          "[plan][balance]") {
  // By the model a ring of both ranks takes 75 s and ranks of their own 80 s.
  PlanningContext context = small_pool(2);
  context.simulated_seconds = [](const Plan& plan) {
    const auto is_ring = [](const MicroBatch& micro_batch) { return micro_batch.group.size() > 1; };
    return std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), is_ring) ? 90.0 : 80.0;
  };
  const Plan plan = plan_of("hdp-balance", context, {10, 20, 30, 40, 50});
  for (const MicroBatch& micro_batch : plan.micro_batches) CHECK(micro_batch.group.size() == 1);
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
