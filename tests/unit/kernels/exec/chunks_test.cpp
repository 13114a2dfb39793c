// Sequences in chunks that one rank runs in order.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/exec/executor.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/recompute_text.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

Plan chunks_of_32(std::int64_t ranks, std::int64_t layers, int kept) {
  Plan plan = policy_plan("chunkflow: {chunk_size: 32, kept_chunks: " + std::to_string(kept) + "}", ranks, layers, 160,
                          mixed_lengths);
  REQUIRE(check_plan(plan).empty());
  return plan;
}

TEST_CASE("sequences in chunks in order give the loss and the gradients of whole sequences", "[exec][chunks]") {
  const Transformer model = grouped_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 11);
  const Training one = train(model, one_rank_plan(model.layers, mixed_lengths), *tokens, Way{});
  for (const std::int64_t ranks : {1, 2}) {
    for (const int kept : {1, 3}) {
      const Plan plan = chunks_of_32(ranks, model.layers, kept);
      const auto repeats = [](const MicroBatch& micro_batch) { return micro_batch.repeats_forward; };
      // 66 tokens are three chunks.
      CHECK(std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(), repeats) == (kept < 3));
      for (const Way& way : {Way{}, Way{.tp = 2}, Way{.pp = 2}, Way{.tp = 2, .pp = 2},
                             Way{.recompute = Recompute::selective}, Way{.recompute = Recompute::full, .pp = 2}}) {
        INFO(ranks << " ranks, " << kept << " kept, tp " << way.tp << ", pp " << way.pp << ", recompute "
                   << test::recompute_text(way.recompute));
        check_same(train(model, plan, *tokens, way), one);
      }
    }
  }
}

TEST_CASE("chunks that keep their activations may have them on the host", "[exec][chunks][offload]") {
  const Transformer model = grouped_heads(4);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 12);
  Plan plan = chunks_of_32(1, model.layers, 2);
  const Training kept = train(model, plan, *tokens, Way{});
  for (MicroBatch& micro_batch : plan.micro_batches) {
    if (!micro_batch.repeats_forward) micro_batch.offload = 1;
  }
  REQUIRE(check_plan(plan).empty());
  CHECK((train(model, plan, *tokens, Way{}).gradients == kept.gradients));  // too many to print
}

TEST_CASE("several steps of chunks in order train as whole sequences do", "[exec][chunks]") {
  const Transformer model = grouped_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 13);
  std::vector<Plan> whole(3, one_rank_plan(model.layers, mixed_lengths));
  std::vector<Plan> chunks(3, chunks_of_32(2, model.layers, 1));
  for (std::size_t step = 0; step < whole.size(); ++step) {
    whole[step].step = chunks[step].step = static_cast<std::int64_t>(step);
  }
  const Training expected = train(model, whole, *tokens);
  const Training found = train(model, chunks, *tokens);
  for (std::size_t step = 0; step < whole.size(); ++step) {
    CHECK(found.losses[step] == Approx(expected.losses[step]).epsilon(1e-5));
  }
}

TEST_CASE("the timeline of chunks in order has their passes apart, forward and backward", "[exec][chunks][timeline]") {
  const Transformer model = grouped_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 14);
  const Plan plan = chunks_of_32(1, model.layers, 1);
  const Timeline timeline = train(model, plan, *tokens, Way{}).timelines.at(0);
  const Pipeline pipeline(plan, 1, {});
  REQUIRE(timeline.passes.size() == pipeline.passes());
  Instant last;
  for (const PassId pass : pipeline.orders()[0]) {
    CHECK(timeline.interval(pass).begin >= last);
    last = timeline.interval(pass).end;
  }
}

}  // namespace
}  // namespace hdpsim::kernels::exec
