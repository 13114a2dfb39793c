#include "sim/plan/expert_waves.h"

#include <numeric>

#include "sim/plan/plan_file.h"
#include "tests/support/small_world.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

// The tokens that a rank has in each of its waves.
std::vector<std::int64_t> tokens_of(const Plan& plan, std::size_t rank) {
  std::vector<std::int64_t> tokens;
  for (const MicroBatchId id : plan.schedule[rank]) tokens.push_back(plan.micro_batches[id.index()].tokens());
  return tokens;
}

using Tokens = std::vector<std::int64_t>;

TEST_CASE("a rank with fewer micro-batches joins the others' waves with nothing, or with padding", "[waves]") {
  const Plan plan = test::plan_of(2, 4, {{{0}, 100}, {{0}, 200}, {{1}, 300}});
  const Plan joined = in_expert_waves(plan, 2, 0);
  CHECK(tokens_of(joined, 0) == Tokens{100, 200});
  CHECK(tokens_of(joined, 1) == Tokens{300, 0});
  CHECK(check_plan(joined).empty());
  const Plan padded = in_expert_waves(plan, 2, 64);
  CHECK(tokens_of(padded, 1) == Tokens{300, 64});
  CHECK(padded.micro_batches.back().area() == 64.0 * 65 / 2);
  CHECK(check_plan(padded).empty());
  CHECK(in_expert_waves(plan, 1, 64) == plan);
}

TEST_CASE("padding is offloaded as all other micro-batches are; what has no tokens keeps nothing", "[waves]") {
  Plan plan = test::plan_of(2, 4, {{{0}, 100}, {{0}, 200}, {{1}, 300}});
  for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.offload = 0.5;
  CHECK(in_expert_waves(plan, 2, 64).micro_batches.back().offload == 0.5);
  CHECK(in_expert_waves(plan, 2, 0).micro_batches.back().offload == 0);
  plan.micro_batches[0].offload = 0;
  CHECK(in_expert_waves(plan, 2, 64).micro_batches.back().offload == 0);
}

TEST_CASE("a ring is in one wave on all its ranks, and nobody runs before it what stands behind it", "[waves]") {
  // Groups {0, 1} and {2, 3}. Rank 1 has something before the ring of 1 and 2; rank 2 has not.
  const Plan plan = in_expert_waves(test::plan_of(4, 4, {{{1}, 10}, {{1, 2}, 20}, {{2}, 30}, {{3}, 40}}), 2, 0);
  CHECK(tokens_of(plan, 0) == Tokens{0, 0});
  CHECK(tokens_of(plan, 1) == Tokens{10, 20});
  // The ring is in the pool's second wave, behind a first one that rank 3 alone fills.
  CHECK(tokens_of(plan, 2) == Tokens{0, 20, 30});
  CHECK(tokens_of(plan, 3) == Tokens{40, 0, 0});
  CHECK(check_plan(plan).empty());
  const WaveTable waves(plan);
  const auto wave_of = [&](std::size_t rank, std::size_t k) { return waves.wave(plan.schedule[rank][k]); };
  CHECK(wave_of(0, 0) == wave_of(1, 0));
  CHECK(wave_of(2, 0) == wave_of(3, 0));
  CHECK(wave_of(0, 0) != wave_of(2, 0));
  CHECK(wave_of(0, 1) == wave_of(3, 1));  // through the ring
  CHECK(wave_of(2, 2) != wave_of(2, 1));
}

TEST_CASE("the fullest expert group that a ring meets sets what its ranks' devices compute", "[waves]") {
  const Plan plan = in_expert_waves(test::plan_of(4, 4, {{{0}, 90}, {{1, 2}, 20}, {{3}, 40}}), 2, 0);
  const auto tokens = expert_tokens(plan, 1, 2);
  CHECK(tokens[0] == ExpertTokens{90, 100});  // with 10 of the ring's
  CHECK(tokens[1] == ExpertTokens{90, 100});
  CHECK(tokens[2] == ExpertTokens{40, 50});
  // Two devices a rank: a group of four is two ranks, a group of two is one.
  CHECK(expert_tokens(plan, 2, 4)[2] == ExpertTokens{20, 50});
  CHECK(expert_tokens(test::plan_of(1, 4, {{{0}, 90}}), 2, 2)[0] == ExpertTokens{45, 90});
}

TEST_CASE("every policy's plan comes into waves, whatever the lengths", "[waves]") {
  const auto entry = GENERATE(as<std::string>{}, "static", "hdp-naive", "hdp-balance", "hdp-balance: {balance: dp}");
  PlanningContext context = small_pool();
  context.expert_ranks = GENERATE(2, 4, 8);
  const std::vector<std::int64_t> lengths{800, 350, 320, 210, 100, 90, 70, 60, 40, 40, 30, 20, 10, 5, 1};
  const Plan plan = plan_of(entry, context, lengths);
  CHECK(plan.expert_ranks == context.expert_ranks);
  std::int64_t tokens = 0;
  for (const MicroBatch& micro_batch : plan.micro_batches) tokens += micro_batch.tokens();
  CHECK(tokens == std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  Diagnostics diagnostics;
  CHECK(read_plan("plan.json", plan_text(plan), diagnostics) == plan);
}

TEST_CASE("what breaks the waves of a plan is told", "[waves]") {
  Plan plan = in_expert_waves(test::plan_of(4, 4, {{{0}, 100}, {{1}, 200}, {{2, 3}, 300}}), 2, 0);
  REQUIRE(check_plan(plan).empty());
  using Problems = std::vector<std::string>;
  SECTION("a rank that leaves early") {
    plan.micro_batches.pop_back();
    plan.micro_batches.push_back({.group = {HdpRank(2)}, .spans = {}, .padding = 8});
    plan.schedule[2].emplace_back(plan.micro_batches.size() - 1);
    plan.sequence_tokens.pop_back();
    plan.schedule[2].erase(plan.schedule[2].begin());
    plan.schedule[3].clear();
    CHECK(check_plan(plan) == Problems{"rank 3 runs 0 micro-batches, rank 2 of its expert group 1"});
  }
  SECTION("groups that do not fill the pool") {
    plan.expert_ranks = 3;
    CHECK(check_plan(plan) == Problems{"expert groups of 3 ranks do not divide a pool of 4"});
  }
  SECTION("padding beside spans, and nothing at all without groups") {
    plan.micro_batches[0].padding = 8;
    CHECK(check_plan(plan) ==
          Problems{"micro-batch 0 has padding: that is for single ranks with nothing else to run in a wave"});
    plan.micro_batches[0] = {.group = {HdpRank(0)}, .spans = {}};
    plan.sequence_tokens[0] = 0;
    plan.expert_ranks = 1;
    CHECK(check_plan(plan).at(1) == "micro-batch 0 has no spans");
  }
  SECTION("two rings that cross between two groups") {
    plan = test::plan_of(4, 4, {{{0, 2}, 10}, {{1, 3}, 10}});
    plan.expert_ranks = 2;
    REQUIRE(check_plan(plan).empty());
    const MicroBatchId a = plan.schedule[0][0];
    const MicroBatchId b = plan.schedule[1][0];
    plan.micro_batches.push_back({.group = {HdpRank(0)}, .spans = {}});
    plan.micro_batches.push_back({.group = {HdpRank(1)}, .spans = {}});
    plan.micro_batches.push_back({.group = {HdpRank(2)}, .spans = {}});
    plan.micro_batches.push_back({.group = {HdpRank(3)}, .spans = {}});
    // The first group runs the ring of 0 and 2 first, the second group that of 1 and 3.
    plan.schedule = {{a, MicroBatchId(2)}, {MicroBatchId(3), b}, {MicroBatchId(4), a}, {b, MicroBatchId(5)}};
    const Problems problems = check_plan(plan);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].starts_with("deadlock: "));
  }
}

}  // namespace
}  // namespace hdpsim
