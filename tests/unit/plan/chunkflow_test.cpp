#include <algorithm>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

struct Chunk {
  Indices sequences;
  std::int64_t begin;
  std::int64_t tokens;
  bool continues;
  bool repeats_forward;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

// What a rank runs, in order.
std::vector<Chunk> chunks_of(const Plan& plan, std::size_t rank) {
  std::vector<Chunk> all;
  for (const MicroBatchId id : plan.schedule[rank]) {
    const MicroBatch& micro_batch = plan.micro_batches[id.index()];
    CHECK(ranks_of(micro_batch) == Indices{rank});
    all.push_back({sequences_of(micro_batch), micro_batch.spans.front().begin, micro_batch.tokens(),
                   micro_batch.continues, micro_batch.repeats_forward});
  }
  return all;
}

TEST_CASE("chunkflow: long sequences in chunks, short ones in packs of a chunk's size", "[plan][chunkflow]") {
  // A rank of 100 tokens: 250 in chunks of 100, 100 and 50; 60 with 40, and 30. Least work first.
  PlanningContext context = small_pool(1);
  context.context = 250;
  CHECK(chunks_of(plan_of("chunkflow", context, {40, 250, 30, 60}), 0) ==
        std::vector<Chunk>{{{2}, 0, 30, false, false},
                           {{3, 0}, 0, 100, false, false},
                           {{1}, 0, 100, false, true},
                           {{1}, 100, 100, true, true},
                           {{1}, 200, 50, true, false}});
}

TEST_CASE("chunkflow: the last chunks of a sequence keep their activations, and chunks shrink for them",
          "[plan][chunkflow]") {
  PlanningContext context = small_pool(1);
  context.context = 250;
  // Of 100 tokens two chunks have 50 each.
  const std::vector<Chunk> kept = chunks_of(plan_of("chunkflow: {kept_chunks: 2}", context, {200}), 0);
  CHECK(kept == std::vector<Chunk>{{{0}, 0, 50, false, true},
                                   {{0}, 50, 50, true, true},
                                   {{0}, 100, 50, true, false},
                                   {{0}, 150, 50, true, false}});
  // A pipeline of 4 stages holds 4 micro-batches on its first stage; of 400 tokens there are then 5 of 80.
  context.stages = 4;
  CHECK(chunks_of(plan_of("chunkflow: {kept_chunks: 2}", context, {200}), 0).front().tokens == 80);
  CHECK(chunks_of(plan_of("chunkflow: {kept_chunks: 2, chunk_size: 20}", context, {200}), 0).size() == 10);
}

TEST_CASE("chunkflow: packs and chunked sequences go to the rank of least work, largest first", "[plan][chunkflow]") {
  PlanningContext context = small_pool(2);
  context.context = 300;
  context.work.forward_of_tokens = 0.5;  // what runs forward twice counts once and a half
  // 300 is 3 chunks, two of them forward twice: 400 of work. 100, 90, 80 and 70 are packs: 340.
  const Plan plan = plan_of("chunkflow", context, {70, 300, 80, 90, 100});
  CHECK(chunks_of(plan, 0).size() == 3);
  CHECK(chunks_of(plan, 1) == std::vector<Chunk>{{{0}, 0, 70, false, false},
                                                 {{2}, 0, 80, false, false},
                                                 {{3}, 0, 90, false, false},
                                                 {{4}, 0, 100, false, false}});
}

TEST_CASE("chunkflow: chunks that no rank holds, and pipelines and experts without chunks in order, are told",
          "[plan][chunkflow]") {
  CHECK_THAT(problems_of_entry("chunkflow: {chunk_size: 101}", small_pool()),
             Catch::Contains("study.yaml:1:25: error: 'chunk_size' is 101, a rank holds 100 tokens"));
  PlanningContext long_context = small_pool();
  long_context.context = 65537;
  CHECK_THAT(
      problems_of_entry("chunkflow: {chunk_size: 1}", long_context),
      Catch::Contains("study.yaml:1:25: error: a context of 65537 tokens in chunks of 1: more than 65536 chunks"));
  CHECK_THAT(problems_of_entry("chunkflow: {kept_chunks: 1000}", long_context),
             Catch::Contains("study.yaml:1:26: error: a context of 65537 tokens in chunks of 1"));
  PlanningContext gpipe = small_pool();
  gpipe.runs_chunks_in_order = false;
  CHECK_THAT(problems_of_entry("chunkflow", gpipe),
             Catch::Contains("the schedule of the pipeline does not run chunks of a sequence in order"));
  PlanningContext experts = small_pool();
  experts.expert_ranks = 4;
  CHECK_THAT(problems_of_entry("chunkflow", experts), Catch::Contains("expert groups have 4 ranks"));
}

}  // namespace
}  // namespace hdpsim
