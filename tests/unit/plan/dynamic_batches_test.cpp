#include <algorithm>
#include <vector>

#include "sim/plan/impl/bin_exchange.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Sets = std::vector<std::vector<std::size_t>>;

Sets divided(const std::vector<int>& values, std::size_t parts, bool equal_sizes) {
  const std::vector<ExactWork> works(values.begin(), values.end());
  return largest_differencing(works, parts, equal_sizes);
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
