#include <algorithm>
#include <vector>

#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/updates.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Problems = std::vector<std::string>;
using Sets = std::vector<std::vector<std::size_t>>;

Sets divided(const std::vector<int>& values, std::size_t parts, bool equal_sizes) {
  const std::vector<ExactWork> works(values.begin(), values.end());
  return largest_differencing(works, parts, equal_sizes);
}

// Each of which holds the longest sequence.
PlanningContext two_ranks() {
  return with(small_pool(2), [](PlanningContext& pool) { pool.context = 100; });
}

// Sequences of every micro-batch of a rank, in the order of execution.
Sets micro_batches_of_rank(const Plan& plan, std::size_t rank) {
  Sets found;
  for (const MicroBatchId id : plan.schedule[rank]) found.push_back(sequences_of(plan.micro_batches[id.index()]));
  return found;
}

}  // namespace

TEST_CASE("largest differencing joins the largest set of one state with the smallest of another", "[plan][verl]") {
  // 8 - 7 = 1, 6 - 5 = 1, 4 - 1 = 3, 3 - 1 = 2: the sums of {7, 5, 4} and {8, 6} differ by 2.
  CHECK(divided({4, 5, 6, 7, 8}, 2, false) == Sets{{0, 1, 3}, {2, 4}});
  CHECK(divided({1, 2, 3, 4, 5, 6}, 2, true).front().size() == 3);
  CHECK(divided({}, 3, true) == Sets{{}, {}, {}});
  CHECK(divided({7}, 2, false) == Sets{{0}, {}});
}

TEST_CASE("verl: replicas, micro-batches and their order are those of verl's own code", "[plan][verl]") {
  // Made by volcengine/verl at b178a3cd (verl/utils/seqlen_balancing.py): 16 replicas of one GPU, 32Ki tokens each.
  const std::vector<std::int64_t> lengths = {
      300, 442, 863, 501, 616, 447, 387, 433, 161, 738, 472, 85,  808, 722, 658, 732, 643, 863, 122, 554, 286, 96,
      50,  663, 92,  681, 500, 596, 522, 68,  147, 136, 441, 481, 468, 425, 184, 234, 361, 390, 860, 394, 238, 32768,
      728, 54,  575, 206, 505, 347, 314, 305, 804, 532, 705, 191, 210, 342, 690, 848, 454, 349, 843, 410};
  const std::vector<Sets> of_verl = {
      {{43}, {22, 5, 20}},  {{11, 2}, {34, 7}},   {{31, 60, 39}, {17}}, {{16, 35}, {21, 25}},
      {{29, 40}, {10, 32}}, {{30, 12}, {3, 6}},   {{26, 1}, {45, 62}},  {{4, 61}, {36, 58}},
      {{56, 44}, {19, 49}}, {{14, 41}, {18, 23}}, {{24, 59}, {33, 63}}, {{27, 57}, {55, 54}},
      {{8, 52}, {48, 38}},  {{37, 15}, {53, 50}}, {{47, 13}, {46, 0}},  {{42, 9}, {28, 51}}};
  PlanningContext context = small_pool();
  context.ranks = 16;
  context.capacity = context.context = 32768;
  const Plan plan = plan_of("verl", context, lengths);
  for (std::size_t rank = 0; rank < of_verl.size(); ++rank) {
    INFO("rank " << rank);
    CHECK(micro_batches_of_rank(plan, rank) == of_verl[rank]);
  }
}

TEST_CASE("verl: replicas of several ranks share each sequence, and batches that do not divide are dealt by work",
          "[plan][verl]") {
  PlanningContext context = small_pool();  // 8 ranks of 100 tokens
  context.context = 200;
  const Plan plan = plan_of("verl: {cp: 2, micro_batches_divided_by: 2}", context, {150, 90, 80, 70, 60, 50, 40});
  CHECK(check_plan(plan).empty());
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    CHECK(micro_batch.group.size() == 2);
    CHECK(micro_batch.tokens() <= 200);
  }
}

TEST_CASE("verl looks at no tokens: a plan with a micro-batch that does not fit states what it needs", "[plan][verl]") {
  PlanningContext context = small_pool();
  context.ranks = 1;
  context.capacity = context.context = 100000;
  // 60,000 tokens in one sequence are as much work as 120,000 in six.
  const std::vector<std::int64_t> lengths = {60000, 20000, 20000, 20000, 20000, 20000, 20000};
  const Plan plan = plan_of("verl", context, lengths);
  CHECK(check_plan(plan).empty());
  CHECK(plan.capacity == 120000);
  CHECK(tokens_held(plan) == 120000);
  CHECK(capacity_excess(tokens_held(plan), context.capacity) == "120000 of 100000 tokens on a rank");
}

TEST_CASE("verl: mini-batches take the next sequences of every replica", "[plan][verl]") {
  const PlanningContext context = two_ranks();
  // Without balance the replicas have sequences 0 to 3 and 4 to 7, and each update two of each.
  const std::string entry = "verl: {cp: 1, balance: none, ";
  const Plan plan = plan_of(entry + "mini_batch: 4}", context, {10, 20, 30, 40, 50, 40, 70, 30});
  CHECK(check_plan(plan).empty());
  CHECK(update_count(plan) == 2);
  CHECK(micro_batches_of_rank(plan, 0) == Sets{{0, 1}, {2, 3}});
  CHECK(micro_batches_of_rank(split_by_update(plan)[1], 1).size() == 1);
  // Seven sequences are no mini-batches of four, but two even updates: of 2 and 2, and of 2 and 1.
  CHECK_THROWS_WITH(plan_of(entry + "mini_batch: 4}", context, {10, 20, 30, 40, 50, 40, 70}),
                    Catch::Contains("a replica has 3 sequences, which are no mini-batches of 2"));
  const Plan even = plan_of(entry + "updates: 2}", context, {10, 20, 30, 40, 50, 40, 70});
  CHECK(check_plan(even).empty());
  CHECK(micro_batches_of_rank(split_by_update(even)[1], 1) == Sets{{6}});
}

TEST_CASE("verl: what mini-batches do not allow is refused with the place and what to do", "[plan][verl]") {
  const PlanningContext context = two_ranks();
  CHECK(problems_by_column("verl: {mini_batch: 4, updates: 2}", context) ==
        Problems{"32: 'updates' and 'mini_batch' both say how the batch is divided; state one of them"});
  CHECK(problems_by_column("verl: {group: 4}", context) ==
        Problems{"15: 'group' has sequences stay together, which only balance: groups does; write balance: groups, or "
                 "leave 'group' out"});
  CHECK(problems_by_column("verl: {dynamic_cp: true, balance: v1}", context).size() == 1);
  CHECK_THROWS_WITH(plan_of("verl: {cp: 1, mini_batch: 3}", context, {1, 2, 3, 4, 5, 6}),
                    Catch::Contains("a mini-batch of 3 does not divide among 2 replicas"));
  CHECK_THROWS_WITH(plan_of("verl: {max_tokens: 50}", small_pool(1), {51}),
                    Catch::Contains("a sequence of 51 tokens is longer than a micro-batch, which has 50"));
}

TEST_CASE("slime, miles: packs are halved until every replica has as many", "[plan][slime]") {
  const PlanningContext context = two_ranks();
  // First fit: {60, 30}, {50, 40}, {20}: the last of the heaviest, {50, 40}, is halved.
  const std::vector<std::int64_t> lengths = {60, 50, 30, 40, 20};
  CHECK(micro_batches_of_rank(plan_of("slime: {cp: 1}", context, lengths), 1) == Sets{{1}, {3}});
  // Longest first: {60, 40}, {50, 30, 20}, as many as there are replicas.
  CHECK(micro_batches_of_rank(plan_of("miles: {cp: 1}", context, lengths), 1) == Sets{{1, 2, 4}});
  // Three micro-batches of two sequences are none of two replicas.
  CHECK_THROWS_WITH(plan_of("slime: {cp: 1, micro_batch: 2}", context, lengths),
                    Catch::Contains("slime: 3 micro-batches are no multiple of 2"));
  CHECK_THROWS_WITH(plan_of("slime: {cp: 1, updates: 3}", context, lengths),
                    Catch::Contains("an optimizer step of 1 sequences for 2 replicas"));
  CHECK(problems_by_column("slime: {micro_batch: 2, balance_by_flops: true}", context).size() == 1);
}

TEST_CASE("nemo-rl: packs of most sequences are divided until the replicas have as many", "[plan][nemo]") {
  const PlanningContext context = two_ranks();
  const std::string entry = "nemo-rl: {cp: 1, packing: concatenative";
  // {40, 40}, {50, 30}, {90}: the last pack of two gives its last one away.
  const Plan plan = plan_of(entry + "}", context, {40, 40, 50, 30, 90, 10});
  CHECK(micro_batches_of_rank(plan, 0) == Sets{{0, 1}, {4}});
  CHECK(micro_batches_of_rank(plan, 1) == Sets{{2, 3}, {5}});
  CHECK_THROWS_WITH(plan_of(entry + ", round_to: 64}", context, {70, 60}),
                    Catch::Contains("a sequence of 128 tokens is longer than a micro-batch, which has 100"));
  CHECK_THROWS_WITH(plan_of(entry + "}", context, {70}),
                    Catch::Contains("an optimizer step of 1 sequences for 2 replicas"));
}

TEST_CASE("nemo-rl, roll: rows of like lengths are padded to the longest of their places", "[plan][nemo][roll]") {
  const PlanningContext context = two_ranks();
  // By length: 10 and 15, then 20 and 25, then 41 and 45, one of each pair on a rank; in tens 20, 30 and 45 or 50 wide.
  // Two places of 30 and three of 50 are 60 and 150 tokens: the third place is a micro-batch of its own.
  const std::vector<std::int64_t> lengths = {45, 10, 20, 15, 25, 41};
  const auto rows = [](const Plan& plan, std::size_t rank) {
    std::vector<std::pair<Sets::value_type, std::int64_t>> all;
    for (const MicroBatchId id : plan.schedule[rank]) {
      const MicroBatch& each = plan.micro_batches[id.index()];
      all.emplace_back(sequences_of(each), each.spans.front().tokens);
      CHECK(each.tokens() == std::ssize(each.spans) * each.spans.front().tokens);
    }
    return all;
  };
  using Rows = decltype(rows(Plan{}, 0));
  const Plan nemo = plan_of("nemo-rl: {cp: 1, batches: padded, round_to: 10}", context, lengths);
  CHECK(check_plan(nemo).empty());
  CHECK(rows(nemo, 0) == Rows{{{1, 2}, 30}, {{5}, 45}});  // no wider than the longest of the batch
  CHECK(rows(nemo, 1) == Rows{{{3, 4}, 30}, {{0}, 45}});
  const std::string entry = "roll: {cp: 1, batches: padded, round_to: 10";
  const Plan roll = plan_of(entry + ", accumulate: 1}", context, lengths);
  CHECK(check_plan(roll).empty());
  CHECK(update_count(roll) == 2);
  CHECK(rows(roll, 1) == Rows{{{3, 4}, 30}, {{0}, 50}});
  // A multiple of three needs one more, the first, which is cut in half and keeps its width.
  const Plan thirds = plan_of(entry + ", micro_batches_divided_by: 3}", context, lengths);
  CHECK(rows(thirds, 0) == Rows{{{1}, 30}, {{2}, 30}, {{5}, 50}});
  CHECK_THROWS_WITH(plan_of(entry + ", micro_batches_divided_by: 4}", context, lengths),
                    Catch::Contains("3 sequences of a replica make no 4 micro-batches"));
  CHECK(problems_by_column(entry + ", mini_batch: 2}", context).size() == 1);
  CHECK(problems_by_column("roll: {accumulate: 2}", context).size() == 1);
  CHECK(problems_by_column("roll: {round_to: 10}", context).size() == 1);
  CHECK(problems_by_column("nemo-rl: {batches: padded, largest_first: true}", context).size() == 1);
}

TEST_CASE("roll: a context that no micro-batch holds is a problem of the options", "[plan][roll]") {
  const PlanningContext context = two_ranks();
  CHECK(problems_by_column("roll: {cp: 1, max_tokens: 50}", context) ==
        Problems{"27: a micro-batch has 50 tokens, fewer than a context of 100; use a larger 'max_tokens', or more "
                 "ranks for a sequence"});
}

TEST_CASE("verl, openrlhf: the number of micro-batches follows from max_tokens, which a rank must hold",
          "[plan][verl]") {
  const PlanningContext context = small_pool(1);
  for (const std::string& policy : std::vector<std::string>{"verl", "openrlhf"}) {
    CAPTURE(policy);
    CHECK(plan_of(policy, context, {50, 50, 50}).micro_batches.size() == 2);
    CHECK(plan_of(policy + ": {max_tokens: 50}", context, {50, 50, 50}).micro_batches.size() == 3);
    CHECK_THAT(problems_of_entry(policy + ": {max_tokens: 101}", context),
               Catch::Contains("'max_tokens' is 101, a rank holds 100"));
  }
}

}  // namespace hdpsim
