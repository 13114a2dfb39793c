#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

struct Run {
  Indices ranks;
  Indices sequences;
  friend bool operator==(const Run&, const Run&) = default;
};

std::vector<Run> runs(const Plan& plan) {
  std::vector<Run> all;
  for (const MicroBatch& micro_batch : plan.micro_batches)
    all.push_back({ranks_of(micro_batch), sequences_of(micro_batch)});
  return all;
}

// The same pool, for sequences that 2 or 4 of its ranks hold.
PlanningContext pool_for(std::int64_t ranks, std::int64_t longest) {
  PlanningContext context = small_pool(ranks);
  context.context = longest;
  return context;
}

}  // namespace

TEST_CASE("megatron-dp-balanced: a sequence that does not fit closes the pack, and packs go round the replicas",
          "[plan][megatron]") {
  // 2 replicas of 2 ranks of 100 tokens. 120 + 60 fit, 50 does not; 50 + 150 fill a pack.
  CHECK(runs(plan_of("megatron-dp-balanced: {cp: 2}", pool_for(4, 200), {120, 60, 50, 150})) ==
        std::vector<Run>{{{0, 1}, {0, 1}}, {{2, 3}, {2, 3}}});
}

TEST_CASE("megatron-dp-balanced: last sequences of packs become packs until replicas have as many",
          "[plan][megatron]") {
  // One pack of three for two replicas; with two micro-batches each, another one is split off.
  CHECK(runs(plan_of("megatron-dp-balanced: {cp: 4}", pool_for(8, 400), {10, 20, 30})) ==
        std::vector<Run>{{{0, 1, 2, 3}, {0, 1}}, {{4, 5, 6, 7}, {2}}});
  const std::string pairs = "megatron-dp-balanced: {cp: 4, micro_batches_divided_by: 2}";
  CHECK(runs(plan_of(pairs, pool_for(8, 400), {10, 20, 30, 40})) ==
        std::vector<Run>{{{0, 1, 2, 3}, {0}}, {{4, 5, 6, 7}, {3}}, {{0, 1, 2, 3}, {2}}, {{4, 5, 6, 7}, {1}}});
  CHECK_THROWS_WITH(plan_of(pairs, pool_for(8, 400), {10, 20, 30}),
                    Catch::Contains("makes 1 packs, which it cannot split into a multiple of 4"));
}

TEST_CASE("megatron-dp-balanced: a pack has no more sequences than the limit", "[plan][megatron]") {
  const std::string two = "megatron-dp-balanced: {cp: 8, max_sequences: 2}";
  CHECK(plan_of(two, small_pool(), {1, 1, 1, 1, 1}).micro_batches.size() == 3);
}

TEST_CASE("megatron-hybrid-cp: each sequence is a micro-batch, and idle ranks join the smallest group",
          "[plan][megatron]") {
  // 4 ranks of 100 tokens: 200 tokens need two ranks, 90 need one. The second of 90 doubles nothing: the pool is full.
  CHECK(runs(plan_of("megatron-hybrid-cp", small_pool(4), {90, 200, 90})) ==
        std::vector<Run>{{{0, 1}, {1}}, {{2}, {0}}, {{3}, {2}}});
  // With one of 90, its group gets the rank that has none.
  CHECK(runs(plan_of("megatron-hybrid-cp", small_pool(4), {90, 200})) ==
        std::vector<Run>{{{0, 1}, {1}}, {{2, 3}, {0}}});
}

TEST_CASE("megatron-hybrid-cp: what would leave loads uneven waits for the next slot", "[plan][megatron]") {
  // 2 ranks of 100 tokens. The two of 90 open a group each; 80 joins the first: 14500 against 8100 for a rank. Taking
  // it away is more even, so that it runs on both ranks afterwards.
  CHECK(runs(plan_of("megatron-hybrid-cp", small_pool(2), {90, 80, 90})) ==
        std::vector<Run>{{{0}, {0}}, {{1}, {2}}, {{0, 1}, {1}}});
}

TEST_CASE("megatron-hybrid-cp refuses a sequence for which the pool has no power of two", "[plan][megatron]") {
  CHECK_THROWS_WITH(plan_of("megatron-hybrid-cp", small_pool(3), {250}),
                    Catch::Contains("gives a sequence of 250 tokens 4 ranks, the pool has 3"));
}

TEST_CASE("megatron-dynamic-cp: sequences are packed where the largest load stays the least", "[plan][megatron]") {
  // 2 ranks of 100 tokens, at most 60 x 100 x 1.05 = 6300 for a rank. 60 opens a group; 40 on the other rank leaves the
  // largest load at 3600, and so does 30 then beside 40: 1600 + 900.
  CHECK(runs(plan_of("megatron-dynamic-cp", small_pool(2), {60, 40, 30})) ==
        std::vector<Run>{{{0}, {0}}, {{1}, {1, 2}}});
}

TEST_CASE("megatron-dynamic-cp: a pool that is no power of two runs together what leaves ranks idle",
          "[plan][megatron]") {
  // Two of 50 tokens get a rank each. Each grows in its turn: the second one, from 1 rank to 2, fills the pool of 3 ...
  CHECK(runs(plan_of("megatron-dynamic-cp", small_pool(3), {50, 50})) == std::vector<Run>{{{0, 1}, {0}}, {{2}, {1}}});
  // ... but of 150 tokens on 2 ranks and 90 on one, the second would reach beyond it.
  CHECK(runs(plan_of("megatron-dynamic-cp", small_pool(4), {150, 90})) ==
        std::vector<Run>{{{0, 1}, {0}}, {{2, 3}, {1}}});
}

TEST_CASE("megatron-dynamic-cp: a group grows up to the whole pool, and beside others only by its own size",
          "[plan][megatron]") {
  // 150 tokens get 2 of 3 ranks, and then all: 140 waits for the next slot, as the original has it.
  CHECK(runs(plan_of("megatron-dynamic-cp", small_pool(3), {150, 140})) ==
        std::vector<Run>{{{0, 1, 2}, {0}}, {{0, 1, 2}, {1}}});
  // Two groups of 2 ranks each leave one of 5 idle, where the original fails.
  CHECK_THROWS_WITH(plan_of("megatron-dynamic-cp: {min_cp: 2}", small_pool(5), {50, 50}),
                    Catch::Contains("doubles a group of 2 ranks, but only 1 are free"));
}

TEST_CASE("megatron-dynamic-cp: slots are split until their number is a multiple", "[plan][megatron]") {
  // One slot of two groups becomes two slots of all ranks, the groups on the left last.
  CHECK(runs(plan_of("megatron-dynamic-cp: {micro_batches_divided_by: 2}", small_pool(4), {200, 180})) ==
        std::vector<Run>{{{0, 1, 2, 3}, {1}}, {{0, 1, 2, 3}, {0}}});
  CHECK_THROWS_WITH(plan_of("megatron-dynamic-cp: {micro_batches_divided_by: 2}", small_pool(4), {400}),
                    Catch::Contains("makes 1 slots, which it cannot split into a multiple of 2"));
}

TEST_CASE("megatron-dynamic-cp: min_cp is the least degree, and a power of two", "[plan][megatron]") {
  CHECK(plan_of("megatron-dynamic-cp: {min_cp: 4}", small_pool(), {10, 10}).micro_batches[0].group.size() == 4);
  CHECK_THAT(problems_of_entry("megatron-dynamic-cp: {min_cp: 6}"),
             Catch::Contains("'min_cp' is 6, it must be a power of two up to the pool's 8 ranks"));
}

}  // namespace hdpsim
