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

TEST_CASE("chunkflow: of each chunk that is kept, as much is offloaded as its forward pass hides",
          "[plan][chunkflow]") {
  // A pair of tokens takes 3.5 ms, two sevenths of it forward; the copies of a token take 0.1 s. The i-th chunk of 50
  // tokens has 2,500 i pairs with the keys before it and 1,275 of its own: 3.775 s of the second's 5 are hidden.
  PlanningContext context = small_pool(1);
  context.context = 250;
  context.host_tokens = 1'000'000;
  context.work.per_token = 0;
  context.work.per_area = 3.5e-3;
  context.work.offload_per_token = 0.1;
  const auto offloads = [&](const std::string& options) {
    std::vector<double> shares;
    const Plan plan = plan_of("chunkflow: {chunk_size: 50, " + options + "}", context, {200});
    for (const MicroBatch& chunk : plan.micro_batches) shares.push_back(chunk.offload);
    return shares;
  };
  CHECK(offloads("kept_chunks: 4, offload: auto") == std::vector<double>{0.255, 0.755, 1, 1});
  CHECK(offloads("kept_chunks: 2, offload: auto") == std::vector<double>{0, 0, 1, 1});
  CHECK(offloads("kept_chunks: 3, offload: 0.5") == std::vector<double>{0, 0.5, 0.5, 0.5});
  CHECK(offloads("kept_chunks: 4") == std::vector<double>{0, 0, 0, 0});
  context.layers = 2;  // which stay
  CHECK(offloads("kept_chunks: 4, offload: auto") == std::vector<double>{0, 0, 0, 0});
  CHECK(problems_of_entry("chunkflow: {offload: token-wise}").find("it must be none, auto or a ratio") !=
        std::string::npos);
}

}  // namespace
}  // namespace hdpsim
