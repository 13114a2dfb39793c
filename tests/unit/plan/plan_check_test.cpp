#include "sim/plan/plan_check.h"

#include <fmt/format.h>

#include <limits>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Problems = std::vector<std::string>;

const MicroBatchId first(0);
const MicroBatchId second(1);
const MicroBatchId third(2);

// Three ranks of 100 tokens: 180 tokens on ranks 0 and 1, then 150 on 1 and 2, then 60 on rank 0.
Plan good_plan() {
  Plan plan;
  plan.policy = "by hand";
  plan.ranks = 3;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {180, 150, 60};
  plan.micro_batches = {{.group = {HdpRank(0), HdpRank(1)}, .spans = {{SequenceId(0), 0, 180}}},
                        {.group = {HdpRank(1), HdpRank(2)}, .spans = {{SequenceId(1), 0, 150}}},
                        {.group = {HdpRank(0)}, .spans = {{SequenceId(2), 0, 60}}}};
  plan.schedule = {{first, third}, {first, second}, {second}};
  return plan;
}

}  // namespace

TEST_CASE("a good plan has no problems", "[plan][check]") {
  CHECK(check_plan(good_plan()).empty());
}

TEST_CASE("padded spans end behind their sequences, and begin inside", "[plan][check]") {
  Plan plan = good_plan();
  plan.micro_batches[2].spans[0].tokens = 70;
  CHECK(check_plan(plan) == Problems{"micro-batch 2 has 70 tokens from 0 of sequence 2, which has 60",
                                     "sequence 2: tokens 0 to 60 are in no micro-batch"});
  plan.micro_batches[2].padded = true;
  CHECK(check_plan(plan).empty());
  Diagnostics diagnostics;
  CHECK(read_plan("plan.json", plan_text(plan), diagnostics) == plan);
  // Cut in two, the second part padded: all tokens of the sequence are there.
  plan.micro_batches[2].spans = {{SequenceId(2), 0, 40}, {SequenceId(2), 40, 30}};
  CHECK(check_plan(plan).empty());
  plan.micro_batches[2].spans = {{SequenceId(2), 0, 40}, {SequenceId(2), 60, 10}};
  CHECK_FALSE(check_plan(plan).empty());
}

TEST_CASE("what is wrong with a plan, problem by problem", "[plan][check]") {
  struct Change {
    const char* what;
    std::function<void(Plan&)> make;
    Problems problems;
  };
  const SequenceId s0(0);
  const SequenceId s2(2);
  const std::vector<Change> changes = {
      {"a sequence may be cut into spans of several micro-batches",
       [&](Plan& plan) {
         plan.micro_batches[0].spans[0].tokens = 150;
         plan.micro_batches[2].spans.push_back({s0, 150, 30});
       },
       {}},
      {"a sequence that nobody has",
       [](Plan& plan) { plan.sequence_tokens.push_back(40); },
       {"sequence 3: tokens 0 to 40 are in no micro-batch"}},
      {"gaps at the begin, in the middle and at the end",
       [&](Plan& plan) {
         plan.micro_batches[0].spans = {{s0, 10, 50}, {s0, 70, 100}};
       },
       {"sequence 0: tokens 0 to 10 are in no micro-batch", "sequence 0: tokens 60 to 70 are in no micro-batch",
        "sequence 0: tokens 170 to 180 are in no micro-batch"}},
      {"tokens that are planned twice",
       [&](Plan& plan) {
         plan.micro_batches[2].spans.push_back({s0, 170, 10});
       },
       {"sequence 0: tokens 170 to 180 are planned twice"}},
      {"spans outside their sequence, of no token, of no sequence",
       [&](Plan& plan) {
         for (const Span& span : {Span{s2, 50, 11}, Span{s2, -1, 1}, Span{s2, 0, 0}, Span{SequenceId(3), 0, 1}}) {
           plan.micro_batches[2].spans.push_back(span);
         }
       },
       {"micro-batch 2 has 11 tokens from 50 of sequence 2, which has 60",
        "micro-batch 2 has 1 tokens from -1 of sequence 2, which has 60",
        "micro-batch 2 has 0 tokens from 0 of sequence 2, which has 60",
        "micro-batch 2 has sequence 3, the batch has 3"}},
      {"180 tokens on two ranks of 90", [](Plan& plan) { plan.capacity = 90; }, {}},
      {"one token fewer",
       [](Plan& plan) { plan.capacity = 89; },
       {"micro-batch 0 leaves 90.0 of 90 tokens on each rank, the capacity is 89"}},
      {"offload makes room: resident_share(0.25) = (2 + 6) / 10, 72 of 90 tokens stay",
       [](Plan& plan) {
         plan.capacity = 75;
         plan.micro_batches[0].offload = 0.25;
       },
       {}},
      {"and not more",
       [](Plan& plan) {
         plan.capacity = 71;
         plan.micro_batches[0].offload = 0.25;
         plan.micro_batches[1].offload = 1;
       },
       {"micro-batch 0 leaves 72.0 of 90 tokens on each rank, the capacity is 71"}},
      {"offload ratios lie between 0 and 1",
       [](Plan& plan) {
         plan.micro_batches[1].offload = 1.5;
         plan.micro_batches[2].offload = std::numeric_limits<double>::quiet_NaN();
       },
       {"micro-batch 1 offloads 1.5, it must be from 0 to 1", "micro-batch 2 offloads nan, it must be from 0 to 1"}},
      {"a rank twice in a group",
       [](Plan& plan) {
         plan.micro_batches[2].group = {HdpRank(0), HdpRank(0)};
       },
       {"micro-batch 2 has rank 0 twice"}},
      {"a rank outside the pool",
       [](Plan& plan) { plan.micro_batches[2].group.emplace_back(3u); },
       {"micro-batch 2 has rank 3, the pool has 3 ranks"}},
      {"no ranks, no spans",
       [](Plan& plan) { plan.micro_batches.emplace_back(); },
       {"micro-batch 3 has no ranks", "micro-batch 3 has no spans"}},
      {"spans are held alone by ranks of a group of several that shares others per document",
       [](Plan& plan) {
         plan.micro_batches[2].local = {{0, {}}};
         plan.micro_batches[0].local = {{1, {}}, {1, {}}, {2, {}}};
         plan.micro_batches[0].cut = TokenCut::per_pack;
       },
       {"micro-batch 0 has local spans, and a cut that is not per_document",
        "micro-batch 0 does not state its local spans by rising rank of the group",
        "micro-batch 0 has spans on rank 2 of its 2", "micro-batch 2 of one rank has local spans"}},
      {"a ring that repeats its forward pass",
       [](Plan& plan) { plan.micro_batches[0].repeats_forward = true; },
       {"micro-batch 0 repeats its forward pass, which single ranks with chunks in order do alone"}},
      {"a micro-batch that is forgotten",
       [](Plan& plan) { plan.schedule[0] = {first}; },
       {"rank 0 never runs micro-batch 2 of its group"}},
      {"one that is repeated",
       [](Plan& plan) {
         plan.schedule[0] = {first, third, third};
       },
       {"rank 0 runs micro-batch 2 twice"}},
      {"one that is invented",
       [](Plan& plan) {
         plan.schedule[0] = {first, third, MicroBatchId(7)};
       },
       {"rank 0 runs micro-batch 7, the plan has 3"}},
      {"one of others",
       [](Plan& plan) {
         plan.schedule[0] = {first, second};
       },
       {"rank 0 runs micro-batch 1, whose group it is not in", "rank 0 never runs micro-batch 2 of its group"}},
      {"a list too many",
       [](Plan& plan) { plan.schedule.emplace_back(); },
       {"the schedule has 4 lists, the pool has 3 ranks"}},
      {"two rings that wait for each other",
       [](Plan& plan) {
         plan.micro_batches[1].group = {HdpRank(0), HdpRank(1)};
         plan.schedule = {{first, second, third}, {second, first}, {}};
       },
       {"deadlock: rank 1 runs 1 before 0, rank 0 runs 0 before 1"}},
      {"a circle of three rings; what waits behind it is not blamed",
       [](Plan& plan) {
         plan.sequence_tokens = {180, 150, 160, 20};
         plan.micro_batches[2] = {.group = {HdpRank(2), HdpRank(0)}, .spans = {{SequenceId(2), 0, 160}}};
         plan.micro_batches.push_back({.group = {HdpRank(0)}, .spans = {{SequenceId(3), 0, 20}}});
         plan.schedule = {{first, third, MicroBatchId(3)}, {second, first}, {third, second}};
       },
       {"deadlock: rank 1 runs 1 before 0, rank 2 runs 2 before 1, rank 0 runs 0 before 2"}},
      {"the same orders without a circle",
       [](Plan& plan) {
         plan.schedule[0] = {third, first};
       },
       {}},
      {"all problems at once",
       [](Plan& plan) {
         plan.capacity = 80;
         plan.schedule[2].clear();
         plan.micro_batches[2].spans[0].tokens = 59;
       },
       {"micro-batch 0 leaves 90.0 of 90 tokens on each rank, the capacity is 80",
        "sequence 2: tokens 59 to 60 are in no micro-batch", "rank 2 never runs micro-batch 1 of its group"}},
  };
  for (const auto& [what, make, problems] : changes) {
    CAPTURE(what);
    Plan plan = good_plan();
    make(plan);
    CHECK(check_plan(plan) == problems);
  }
}

TEST_CASE("check: what ranks of a group hold alone counts for them", "[plan][check][local]") {
  // Rank 1 has 60 tokens of its own beside its half of 180: 150 of 100.
  Plan plan = good_plan();
  plan.micro_batches.pop_back();
  plan.micro_batches[0].local = {{1, {{SequenceId(2), 0, 60}}}};
  plan.schedule[0].pop_back();
  CHECK(check_plan(plan) == Problems{"micro-batch 0 leaves 150.0 of 150 tokens on each rank, the capacity is 100"});
  plan.capacity = 150;
  CHECK(check_plan(plan).empty());
  plan.micro_batches[0].local[0].spans[0].tokens = 50;
  CHECK(check_plan(plan) == Problems{"sequence 2: tokens 50 to 60 are in no micro-batch"});
}

TEST_CASE("check: queries move once, within their span, to ranks of the group, under the cut that serves them",
          "[plan][check][served]") {
  Plan plan = good_plan();
  const std::int64_t tokens = plan.micro_batches[0].spans[0].tokens;
  plan.micro_batches[0].moved = {{0, 0, 10, 1}};
  CHECK(check_plan(plan) == Problems{"micro-batch 0 moves queries, and has a cut that is not served"});
  plan.micro_batches[0].cut = TokenCut::served;
  CHECK(check_plan(plan).empty());
  plan.micro_batches[0].moved = {{0, 0, 10, 2}, {0, 9, 1, 1}, {0, 5, tokens, 0}, {9, 0, 1, 0}};
  CHECK(check_plan(plan) ==
        Problems{"micro-batch 0 moves queries to rank 2 of its 2", "micro-batch 0 moves queries from 9 of span 0 twice",
                 fmt::format("micro-batch 0 moves {0} queries from 5 of span 0, which has {0} "
                             "tokens",
                             tokens),
                 "micro-batch 0 moves queries from 5 of span 0 twice",
                 fmt::format("micro-batch 0 moves queries of span 9 of its {}", plan.micro_batches[0].spans.size())});
  plan.micro_batches[0].moved.clear();
  plan.micro_batches[0].offload = 0.5;
  CHECK(check_plan(plan) ==
        Problems{"micro-batch 0 is served and offloads activations, which is not known of its halves"});
}

// Two ranks of 100 tokens: a sequence of 250 in three chunks on rank 0, one of 60 on rank 1.
Plan plan_with_chunks() {
  Plan plan;
  plan.policy = "by hand";
  plan.ranks = 2;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {250, 60};
  for (const std::int64_t begin : {0, 100, 200}) {
    MicroBatch chunk{.group = {HdpRank(0)},
                     .spans = {{SequenceId(0), begin, std::min<std::int64_t>(100, 250 - begin)}}};
    chunk.continues = begin > 0;
    plan.micro_batches.push_back(std::move(chunk));
  }
  plan.micro_batches.push_back({.group = {HdpRank(1)}, .spans = {{SequenceId(1), 0, 60}}});
  plan.schedule = {{first, second, third}, {MicroBatchId(3)}};
  return plan;
}

TEST_CASE("check: chunks continue the one before them in the list of their rank", "[plan][check][chunks]") {
  CHECK(check_plan(plan_with_chunks()).empty());

  Plan swapped = plan_with_chunks();
  swapped.schedule[0] = {first, third, second};
  CHECK(check_plan(swapped) == Problems{"rank 0 runs micro-batch 2, which does not continue the one before it",
                                        "rank 0 runs micro-batch 1, which does not continue the one before it"});

  Plan without_begin = plan_with_chunks();
  without_begin.micro_batches[1].continues = false;
  CHECK(check_plan(without_begin) == Problems{"rank 0 runs micro-batch 2, which does not continue the one before it"});

  Plan other = plan_with_chunks();
  other.micro_batches[3].continues = true;
  CHECK(check_plan(other) == Problems{"rank 1 runs micro-batch 3, which does not continue the one before it"});
}

TEST_CASE("check: chunks are on single ranks, with one span each, and without expert groups", "[plan][check][chunks]") {
  Plan plan = plan_with_chunks();
  plan.micro_batches[3].group = {HdpRank(0), HdpRank(1)};
  plan.micro_batches[2].spans = {{SequenceId(0), 200, 20}, {SequenceId(0), 220, 30}};
  plan.schedule[0].emplace_back(3);
  CHECK(check_plan(plan) == Problems{"micro-batch 2 continues another one with 2 spans, not with one",
                                     "micro-batch 3 has 2 ranks, in a plan with chunks that continue others"});

  Plan experts = plan_with_chunks();
  experts.expert_ranks = 2;
  CHECK(check_plan(experts) == Problems{"rank 1 runs 1 micro-batches, rank 0 of its expert group 3",
                                        "chunks continue others in expert groups of 2 ranks, which run waves"});

  Plan offload = plan_with_chunks();
  offload.micro_batches[0].repeats_forward = true;
  offload.micro_batches[0].offload = 0.5;
  CHECK(check_plan(offload) == Problems{"micro-batch 0 repeats its forward pass, and has no activations to offload"});
}

TEST_CASE("check: numbers that make no sense", "[plan][check]") {
  Plan plan;
  plan.sequence_tokens = {0};
  CHECK(check_plan(plan) == Problems{"the pool has 0 ranks", "the capacity is 0 tokens", "the model has 0 layers",
                                     "sequence 0 has 0 tokens"});
}

}  // namespace hdpsim
