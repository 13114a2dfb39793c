#include <utility>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

// The sequences that a group shares, or that its i-th rank holds alone.
Indices shared_of(const MicroBatch& micro_batch) {
  Indices sequences;
  for (const Span& span : micro_batch.spans) sequences.push_back(span.sequence.index());
  return sequences;
}

Indices held_by(const MicroBatch& micro_batch, std::size_t holder) {
  Indices sequences;
  for (const LocalSpans& local : micro_batch.local) {
    if (local.holder != holder) continue;
    for (const Span& span : local.spans) sequences.push_back(span.sequence.index());
  }
  return sequences;
}

// A pool whose ranks make replicas of `cp`, each with room for 100 tokens.
Plan skrull(std::int64_t ranks, std::int64_t cp, const std::vector<std::int64_t>& lengths) {
  PlanningContext context = small_pool(ranks);
  context.context = cp * context.capacity;
  return plan_of("skrull: {cp: " + std::to_string(cp) + "}", context, lengths);
}

TEST_CASE("skrull: short sequences stay whole, and a micro-batch without long ones needs no group", "[plan][skrull]") {
  // Shortest first, each to the rank of least work: 30 and 50 to rank 0, 40 and 60 to rank 1.
  const Plan plan = skrull(2, 2, {60, 30, 50, 40});
  REQUIRE(plan.micro_batches.size() == 2);
  CHECK(shared_of(plan.micro_batches[0]) == Indices{1, 2});
  CHECK(ranks_of(plan.micro_batches[0]) == Indices{0});
  CHECK(shared_of(plan.micro_batches[1]) == Indices{3, 0});
  CHECK(ranks_of(plan.micro_batches[1]) == Indices{1});
}

TEST_CASE("skrull: what fits on no rank is shared by all, beside what they hold alone", "[plan][skrull]") {
  // 20 goes to rank 0 and 25 to rank 1; of 150 each rank takes 75.
  const Plan plan = skrull(2, 2, {150, 20, 25});
  REQUIRE(plan.micro_batches.size() == 1);
  const MicroBatch& micro_batch = plan.micro_batches[0];
  CHECK(shared_of(micro_batch) == Indices{0});
  CHECK(held_by(micro_batch, 0) == Indices{1});
  CHECK(held_by(micro_batch, 1) == Indices{2});
  CHECK(micro_batch.tokens_per_rank() == 75 + 25);
}

TEST_CASE("skrull: where a long sequence has no room, the shortest of the fullest rank is shared as well",
          "[plan][skrull]") {
  // Rank 0 holds 20 and 35, rank 1 holds 30. Half of 110 does not fit beside 55; once 20 is shared, 35 + 10 + 55 does.
  const Plan plan = skrull(2, 2, {20, 30, 35, 110});
  REQUIRE(plan.micro_batches.size() == 1);
  CHECK(shared_of(plan.micro_batches[0]) == Indices{0, 3});
  CHECK(held_by(plan.micro_batches[0], 0) == Indices{2});
  CHECK(held_by(plan.micro_batches[0], 1) == Indices{1});

  // Rank 2 holds 90, the others 60: for the other 90 all three are shared, one after the other.
  const Plan all = skrull(3, 3, {60, 90, 60, 90});
  REQUIRE(all.micro_batches.size() == 1);
  CHECK(shared_of(all.micro_batches[0]) == Indices{3, 2, 0, 1});
  CHECK(all.micro_batches[0].local.empty());
}

TEST_CASE("skrull: a batch of more tokens than a replica has room for is dealt by rank to several micro-batches",
          "[plan][skrull]") {
  // 210 tokens on two ranks of 100: 20 with 40, each on a rank of its own, and 30 beside the halves of 120.
  const Plan plan = skrull(2, 2, {120, 20, 30, 40});
  REQUIRE(plan.micro_batches.size() == 3);
  CHECK(shared_of(plan.micro_batches[0]) == Indices{1});
  CHECK(shared_of(plan.micro_batches[1]) == Indices{3});
  CHECK(shared_of(plan.micro_batches[2]) == Indices{0});
  CHECK(held_by(plan.micro_batches[2], 0) == Indices{2});
}

TEST_CASE("skrull: replicas get even work, and every n-th of their sequences in each of n micro-batches",
          "[plan][skrull]") {
  // Two replicas of one rank: 90, 60 and 50 against 80, 70 and 40 (longest to the least load). Neither rank holds two
  // of its longest, so that there are three micro-batches with the shortest, the middle and the longest.
  const Plan plan = skrull(2, 1, {90, 80, 70, 60, 50, 40});
  CHECK(plan.schedule[0].size() == 3);
  CHECK(plan.schedule[1].size() == 3);
  CHECK(shared_of(plan.micro_batches[0]) == Indices{4});
  CHECK(shared_of(plan.micro_batches[2]) == Indices{0});
}

TEST_CASE("skrull: replicas hold twice the longest sequence where the pool has the ranks", "[plan][skrull]") {
  for (const auto& [ranks, degree] : {std::pair<std::int64_t, std::size_t>{8, 4}, {2, 2}, {6, 6}}) {
    PlanningContext context = small_pool(ranks);
    context.context = 2 * context.capacity;
    const Plan plan = plan_of("skrull", context, {200});
    CHECK(plan.micro_batches[0].group.size() == degree);
  }
}

}  // namespace
}  // namespace hdpsim
