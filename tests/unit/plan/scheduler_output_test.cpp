// Groups of ranks and sequences, as schedulers print them, become plans.

#include "sim/plan/scheduler_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/values.h"
#include "sim/plan/plan_check.h"
#include "tests/unit/plan/plan_cases.h"
#include "tests/unit/plan/published_cases.h"

namespace hdpsim {
namespace {

using Strings = std::vector<std::string>;
using RankList = std::vector<std::size_t>;

/// Four ranks of 100 tokens and five sequences of 10, 20, ... 50 tokens.
SchedulerContext four_ranks() {
  SchedulerContext context;
  context.policy = "mine";
  context.ranks = 4;
  context.capacity = 100;
  return context;
}

std::string with_lengths(const std::string& groups) {
  return "{\"lengths\": [10, 20, 30, 40, 50], " + groups + "}";
}

std::vector<Plan> read_all(const std::string& text, const SchedulerContext& context, bool is_lines = false) {
  Diagnostics diagnostics;
  std::vector<Plan> plans = read_scheduler_output("step.json", text, is_lines, context, diagnostics).plans;
  INFO(diagnostics.text());
  REQUIRE(diagnostics.empty());
  for (const Plan& plan : plans) CHECK(check_plan(plan).empty());
  return plans;
}

Plan read_one(const std::string& groups, const SchedulerContext& context = four_ranks()) {
  std::vector<Plan> plans = read_all(with_lengths(groups), context);
  REQUIRE(plans.size() == 1);
  return std::move(plans.front());
}

// The problems as `line:column: message`.
Strings problems_with(const std::string& text, const SchedulerContext& context = four_ranks(), bool is_lines = false) {
  Diagnostics diagnostics;
  CHECK(read_scheduler_output("step.json", text, is_lines, context, diagnostics).plans.empty());
  Strings problems;
  for (const Diagnostic& problem : diagnostics.sorted()) {
    problems.push_back(fmt::format("{}:{}: {}", problem.position.line, problem.position.column, problem.message));
  }
  return problems;
}

// Ranks and sequences of every micro-batch.
std::vector<std::pair<RankList, Indices>> groups_of(const Plan& plan) {
  std::vector<std::pair<RankList, Indices>> groups;
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    groups.emplace_back(ranks_of(micro_batch), sequences_of(micro_batch));
  }
  return groups;
}

}  // namespace

TEST_CASE("groups with their ranks become micro-batches in the order in which they stand", "[import-plan]") {
  const Plan plan = read_one(R"("step": 3, "micro_batches": [
    {"ranks": [0, 1], "sequences": [4]}, {"ranks": [3], "sequences": [2, 0]}, {"ranks": [1, 0], "sequences": [3, 1]}])");
  CHECK(plan.policy == "mine");
  CHECK(plan.step == 3);
  CHECK(plan.ranks == 4);
  CHECK(plan.capacity == 100);
  CHECK(plan.sequence_tokens == std::vector<std::int64_t>{10, 20, 30, 40, 50});
  CHECK(groups_of(plan) == std::vector<std::pair<RankList, Indices>>{{{0, 1}, {4}}, {{3}, {2, 0}}, {{1, 0}, {3, 1}}});
  const std::vector<MicroBatchId> both = {MicroBatchId(0), MicroBatchId(2)};
  CHECK(plan.schedule[0] == both);
  CHECK(plan.schedule[1] == both);
  CHECK(plan.schedule[2].empty());
  CHECK(plan.schedule[3] == std::vector<MicroBatchId>{MicroBatchId(1)});
}

TEST_CASE("groups that state a size get the ranks behind the group before them", "[import-plan]") {
  // 2 + 1 of four ranks are taken, so that a group of two begins again; of a round every one does.
  const std::vector<std::pair<RankList, Indices>> expected = {{{0, 1}, {4}}, {{2}, {3}}, {{0, 1}, {2, 1, 0}}};
  CHECK(groups_of(read_one(R"("micro_batches": [{"size": 2, "sequences": [4]}, {"size": 1, "sequences": [3]},
    {"size": 2, "sequences": [2, 1, 0]}])")) == expected);
  CHECK(groups_of(read_one(R"("micro_batches": [[2, [4]], [1, [3]], [2, [2, 1, 0]]])")) == expected);
  CHECK(groups_of(read_one(R"("micro_batches": [[0, 2, [4]], [2, 1, [3]], [0, 2, [2, 1, 0]]])")) == expected);
  CHECK(groups_of(read_one(R"("micro_batches": [[[2, [4]]], [[2, [3]], [1, [2]], [1, [0, 1]]]])")) ==
        std::vector<std::pair<RankList, Indices>>{{{0, 1}, {4}}, {{0, 1}, {3}}, {{2}, {2}}, {{3}, {0, 1}}});
}

TEST_CASE("lists of micro-batches by rank become micro-batches of one rank, or of runs of ranks", "[import-plan]") {
  SchedulerContext of_any_pool = four_ranks();
  of_any_pool.ranks.reset();
  const Plan two = read_one(R"("by_rank": [[[0, 4], [1]], [3, 2]])", of_any_pool);
  CHECK(two.ranks == 2);
  CHECK(groups_of(two) == std::vector<std::pair<RankList, Indices>>{{{0}, {0, 4}}, {{0}, {1}}, {{1}, {3, 2}}});
  // Two lists in a pool of four: replicas of two ranks each. Empty micro-batches do not exist.
  CHECK(groups_of(read_one(R"("by_rank": [[[0, 4], [1], []], [3, 2]])")) ==
        std::vector<std::pair<RankList, Indices>>{{{0, 1}, {0, 4}}, {{0, 1}, {1}}, {{2, 3}, {3, 2}}});
}

TEST_CASE("ranks that hold parts of the same sequences are a group", "[import-plan]") {
  CHECK(groups_of(read_one(R"("sample_id_groups": [[[4], [4], [], [1]], [[0, 3], [2], [], []]])")) ==
        std::vector<std::pair<RankList, Indices>>{{{0, 1}, {4}}, {{3}, {1}}, {{0}, {0, 3}}, {{1}, {2}}});
}

TEST_CASE("plans of other systems' code, as it states them, become the plans of the policies",
          "[import-plan][published]") {
  const char* const policy = GENERATE("megatron-dp-balanced", "megatron-hybrid-cp", "megatron-dynamic-cp",
                                      "flexsp-homogeneous", "verl", "openrlhf");
  for (const Value& one : cases_of(policy)) {
    if (one.find("refused") != nullptr) continue;
    INFO(policy << ", case " << one.find("case")->text);
    nlohmann::ordered_json step;
    for (const char* key : {"lengths", "ranks", "capacity", "micro_batches"}) step[key] = json_of(*one.find(key));
    PlanningContext pool = small_pool(number(*one.find("ranks")));
    pool.capacity = number(*one.find("capacity"));
    const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
    pool.context = *std::max_element(lengths.begin(), lengths.end());
    SchedulerContext context;
    context.layers = pool.layers;
    const Plan read = read_all(step.dump(), context).front();
    const Plan made = plan_of(one.find("policy")->text, pool, lengths);
    CHECK(groups_of(read) == groups_of(made));
    CHECK(read.schedule == made.schedule);
    CHECK(read.sequence_tokens == made.sequence_tokens);
  }
}

TEST_CASE("steps may stand one a line, and count from the first", "[import-plan]") {
  SchedulerContext context = four_ranks();
  context.first_step = 7;
  const std::string line = R"({"lengths": [10], "micro_batches": [[1, [0]]]})";
  const std::vector<Plan> plans = read_all(line + "\n\n" + line + "\n", context, true);
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].step == 7);
  CHECK(plans[1].step == 8);
  CHECK(read_all(R"({"step": 3, "lengths": [10], "micro_batches": [[1, [0]]]})"
                 "\n" +
                     line,
                 context, true)[1]
            .step == 4);
  CHECK(problems_with(line + "\n" + R"({"step": 7, "lengths": [10], "micro_batches": [[1, [0]]]})", context, true) ==
        Strings{"2:1: step 7 is here a second time"});
  CHECK(problems_with("\n \n", context, true) == Strings{"0:0: there is no step in this file"});
}

TEST_CASE("the batches of a study take the place of lengths, and are compared with them", "[import-plan]") {
  SchedulerContext context = four_ranks();
  context.batch = [](std::int64_t step) { return batch_of({10 + step, 20}); };
  const Plan plan = read_all(R"({"step": 5, "micro_batches": [[1, [0]], [1, [1]]]})", context).front();
  CHECK(plan.sequence_tokens == std::vector<std::int64_t>{15, 20});
  context.steps = 6;
  CHECK(problems_with(R"({"step": 6, "micro_batches": [[1, [0]]]})", context) ==
        Strings{"1:1: there is no step 6: the study has 6, counted from 0"});
  CHECK(
      problems_with(R"({"lengths": [10, 21], "micro_batches": [[1, [0]], [1, [1]]]})", context) ==
      Strings{"1:13: this is not the batch of step 0 of the study: sequence 1 has 21 tokens in the plan and 20 in the "
              "batch"});
  CHECK(problems_with(R"({"lengths": [10, 20, 5], "micro_batches": [[1, [0, 1, 2]]]})", context) ==
        Strings{"1:13: this is not the batch of step 0 of the study: the plan has 3 sequences, the batch 2"});
}

TEST_CASE("sequences that are missing, there twice or unknown are told in one go", "[import-plan]") {
  CHECK(problems_with(with_lengths("\n\"micro_batches\": [[1, [0, 2]],\n [1, [2, 9]]]")) ==
        Strings{"1:1: in no group: sequences 1, 3, 4", "3:7: sequence 2 is here a second time",
                "3:10: there is no sequence 9: the batch has 5"});
}

TEST_CASE("of many problems of a kind the first are told one by one", "[import-plan]") {
  std::string lengths = "1";
  std::string twice = "0";
  for (int i = 1; i < 50; ++i) {
    lengths += ", 1";
    twice += ", 0";
  }
  const Strings problems = problems_with("{\"lengths\": [" + lengths + "], \"micro_batches\": [[1, [" + twice + "]]]}");
  // 49 sequences are missing and one is there 49 times too often: 20 of them, and how many more.
  REQUIRE(problems.size() == 22);
  CHECK_THAT(problems[0], Catch::EndsWith("and 29 more sequences that are there twice"));
  CHECK_THAT(problems[1], Catch::EndsWith(" 19, 20 and 29 more"));
}

TEST_CASE("ranks that cannot be had are told with their place", "[import-plan]") {
  CHECK(problems_with(with_lengths("\"micro_batches\": [\n{\"ranks\": [4], \"sequences\": [0]},\n"
                                   "{\"ranks\": [1, 1], \"sequences\": [1]},\n[5, [2]],\n"
                                   "[[0, 2, [3]],\n [1, 2, [4]]]]")) ==
        Strings{"2:1: there is no rank 4: the pool has 4", "3:1: the group has rank 1 twice",
                "4:1: a group of 5 ranks, the pool has 4", "6:2: rank 1 is in two groups of one round"});
  CHECK(problems_with(with_lengths("\"sample_id_groups\": [[[0, 1],\n[1, 2], [3], [4]]]")) ==
        Strings{"2:1: rank 1 has some sequences of rank 0, but not the same ones"});
  CHECK(problems_with(with_lengths("\"by_rank\": [[0], [1, 2], [3, 4]]")) ==
        Strings{"1:1: 'by_rank' has 3 lists, the pool has 4 ranks"});
}

TEST_CASE("what a step does not say and nobody else knows is asked for", "[import-plan]") {
  CHECK(problems_with(R"({"micro_batches": [{"size": 1, "sequences": [0], "offload": 0.5}]})", SchedulerContext{}) ==
        Strings{"1:1: the step has no 'lengths': the tokens of every sequence of its batch",
                "1:1: the number of HDP ranks is not known",
                "1:1: the capacity is not known: the tokens that one rank holds per micro-batch",
                "1:20: this group offloads, but the layers of a pass of a rank are not known"});
  CHECK(problems_with(with_lengths("\"ranks\": 8, \"micro_batches\": [[1, [0, 1, 2, 3, 4]]]")) ==
        Strings{"1:44: 'ranks' is 8 here, and 4 by the options or the study"});
  CHECK(problems_with(with_lengths("\"groups\": []")) ==
        Strings{"1:1: the step has no groups: 'micro_batches', 'by_rank', 'sample_id_groups'"});
  CHECK(problems_with(with_lengths("\"by_rank\": [[0, 1, 2, 3, 4]], \"micro_batches\": [[1, [0, 1, 2, 3, 4]]]")) ==
        Strings{"1:1: the groups are here in 2 forms: 'micro_batches', 'by_rank'"});
}

TEST_CASE("what nobody knows yet is no problem of a step that others complete", "[import-plan]") {
  SchedulerContext context;
  context.is_partial = true;
  const auto problems = [&](const std::string& text) {
    Diagnostics diagnostics;
    (void)read_scheduler_output("step.json", text, false, context, diagnostics);
    return diagnostics.sorted().size();
  };
  CHECK(problems(R"({"micro_batches": [{"size": 1, "sequences": [0], "offload": 0.5}]})") == 0);
  CHECK(problems(R"({"by_rank": [[[0]], [1]]})") == 0);
  CHECK(problems(with_lengths(R"("micro_batches": [[1, [0, 1, 2, 3]]])")) == 1);  // sequence 4 is in no group
}

TEST_CASE("a group that is none is told with its place", "[import-plan]") {
  CHECK(problems_with(with_lengths("\"micro_batches\": [\n7,\n{\"ranks\": [0], \"size\": 1, \"sequences\": [0]},\n"
                                   "{\"ranks\": [0], \"sequnces\": [1]},\n[1, [-2]]]")) ==
        Strings{"2:1: a group is a map, [first, size, [sequences]] or [size, [sequences]]",
                "3:1: a group has either 'ranks' or 'size', which may have a 'first'", "4:1: a group needs 'sequences'",
                "4:16: a group has no key 'sequnces'", "5:6: a sequence is -2, it must be from 0 to 1Gi"});
  CHECK(problems_with("[1, 2]").size() == 1);
  CHECK_FALSE(problems_with("{\"lengths\": [1, }").empty());
}

TEST_CASE("keys that say nothing about a plan are named and left out", "[import-plan]") {
  Diagnostics diagnostics;
  const std::string text =
      with_lengths("\"loss\": 2.5, \"micro_batches\": [[1, [0, 1, 2, 3, 4]]], \"time\": {\"s\": 1}");
  const SchedulerPlans read = read_scheduler_output("step.json", text, false, four_ranks(), diagnostics);
  CHECK(diagnostics.empty());
  CHECK(read.unread == Strings{"loss", "time"});
}

TEST_CASE("a plan beyond the capacity is a plan: who runs it decides", "[import-plan]") {
  Diagnostics diagnostics;
  const SchedulerPlans read = read_scheduler_output(
      "step.json", with_lengths("\"micro_batches\": [[1, [0, 1, 2, 3, 4]]]"), false, four_ranks(), diagnostics);
  REQUIRE(diagnostics.empty());
  // 10 + 20 + 30 + 40 + 50 tokens on one rank
  CHECK(over_capacity(read.plans.at(0)) ==
        Strings{"micro-batch 0 leaves 150.0 of 150 tokens on each rank, the capacity is 100"});
}

}  // namespace hdpsim
