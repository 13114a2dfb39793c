#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "tests/support/catch.h"
#include "tests/support/device_training.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr std::int64_t layers = 3;  // of which offload takes one

const std::vector<std::int64_t> lengths = {40, 7, 1, 19, 2, 12};

// Rings and packs on 1, 2 or 4 HDP ranks.
Plan plan_on(std::int64_t hdp) {
  if (hdp == 1) return hand_plan(1, layers, lengths, {{{0}, {0, 1, 2}}, {{0}, {3, 4, 5}}});
  if (hdp == 2) return hand_plan(2, layers, lengths, {{{0, 1}, {0, 2}}, {{1}, {1, 4}}, {{1, 0}, {3}}, {{0}, {5}}});
  return hand_plan(4, layers, lengths, {{{2, 0, 3, 1}, {0, 1}}, {{1, 3}, {3}}, {{0}, {2, 4}}, {{2}, {5}}});
}

// bf16 has eight bits: to round is to err by 2^-9 at most. A number between the tokens and a gradient is rounded about
// 12 times in each layer on its way forward (norm, q and k twice, o, projection, sum, norm, gate-up, inner, projection,
// sum) and 12 on its way back, and 8 times outside of layers (parameters among them). Errors of n independent roundings
// add up like sqrt(n).
const double bf16_rounding = std::sqrt(24.0 * layers + 8) / 512;

ReferenceTransformer::Step expected_step(const Transformer& model, const TokenSource& tokens) {
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  for (float& value : start) value = cuda::to_float(cuda::to_bf16(value));
  return ReferenceTransformer(model, start).step(lengths, 0, tokens);
}

TEST_CASE("bf16 on a device that runs behind: loss and gradients are those of fp64 but for rounding",
          "[exec][device]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto expected = expected_step(model, *tokens);
  for (const int tp : {1, 2}) {
    for (const std::int64_t hdp : {1, 4}) {
      INFO("tp " << tp << ", hdp " << hdp);
      const Training trained = train_on_device(model, {plan_on(hdp)}, *tokens, {.tp = tp}, {.element = Element::bf16});
      // Logits, of which a loss is a difference, are below 1: sums of 72 products of a normed number with one of the
      // deviation 0.02 have the deviation 0.17.
      CHECK(std::abs(trained.losses[0] - expected.loss) <= bf16_rounding);
      CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= bf16_rounding);
    }
  }
}

TEST_CASE("fp32 on a device that runs behind agrees with fp64 as on a CPU", "[exec][device]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Training on_cpu = train(model, plan_on(2), *tokens, {.tp = 2});
  const Training trained = train_on_device(model, {plan_on(2)}, *tokens, {.tp = 2}, {.element = Element::fp32});
  CHECK(trained.losses[0] == Approx(on_cpu.losses[0]).epsilon(1e-6));
  CHECK(test::relative_rms_error(trained.gradients, on_cpu.gradients) <= rounding);
}

TEST_CASE("whatever order the device takes, the bits are the same: no event is missing", "[exec][device]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  for (const auto& [hdp, tp] : {std::pair<std::int64_t, int>{4, 1}, {2, 2}}) {
    std::vector<Plan> plans(2, plan_on(hdp));
    plans[1].step = 1;
    for (MicroBatch& micro_batch : plans[0].micro_batches) micro_batch.offload = 1;
    const Way way{.tp = tp};
    const Training first = train_on_device(model, plans, *tokens, way, {.seed = 1, .element = Element::bf16});
    for (unsigned seed = 2; seed <= 4; ++seed) {
      INFO("tp " << tp << ", hdp " << hdp << ", seed " << seed);
      const Training again = train_on_device(model, plans, *tokens, way, {.seed = seed, .element = Element::bf16});
      CHECK(again.losses == first.losses);
      CHECK(again.gradients == first.gradients);
      CHECK(again.parameters == first.parameters);
    }
  }
}

TEST_CASE("over a communicator, whose operations hold a queue until all have come, the bits are the same in any order",
          "[exec][device][nccl]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto expected = expected_step(model, *tokens);
  for (const auto& [hdp, tp] : {std::pair<std::int64_t, int>{4, 1}, {2, 2}}) {
    INFO("tp " << tp << ", hdp " << hdp);
    const auto trained = [&, hdp = hdp, tp = tp](unsigned seed) {
      return train_on_device(model, {plan_on(hdp)}, *tokens, {.tp = tp},
                             {.seed = seed, .element = Element::bf16, .by_communicator = true});
    };
    const Training first = trained(1);
    CHECK(std::abs(first.losses[0] - expected.loss) <= bf16_rounding);
    CHECK(test::relative_rms_error(first.gradients, expected.gradients) <= bf16_rounding);
    for (const unsigned seed : {2U, 3U}) {
      const Training again = trained(seed);
      CHECK(again.losses == first.losses);
      CHECK(again.gradients == first.gradients);
      CHECK(again.parameters == first.parameters);
    }
  }
}

TEST_CASE("what a device computes again, or had on the host, gives the same bits", "[exec][device]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Plan stays = plan_on(2);
  Plan travels = stays;
  for (MicroBatch& micro_batch : travels.micro_batches) micro_batch.offload = 1;
  const cuda::FakeJob job{.seed = 3, .element = Element::bf16};
  const Training kept = train_on_device(model, {stays}, *tokens, {}, job);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    const Training back = train_on_device(model, {travels}, *tokens, {.recompute = recompute}, job);
    CHECK(back.losses == kept.losses);
    CHECK(back.gradients == kept.gradients);
  }
}

TEST_CASE("parameters on a device are the master weights rounded to bf16, and move though a step is less than a bit",
          "[exec][device]") {
  const Transformer model = four_heads(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  Plan plan = hand_plan(2, 1, lengths, {{{0, 1}, {0, 1, 2, 3, 4, 5}}});
  std::vector<Plan> plans(12, plan);
  for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
  // A norm's weight is 1, from which bf16 knows no number nearer than 2^-8 below: steps of a quarter of that must add
  // up.
  const TrainingOptions options{.adam = {.rate = 1.0F / 1024, .beta1 = 0.9F, .beta2 = 0.95F}};
  const Training trained = train_on_device(model, plans, *tokens, {}, {.element = Element::bf16}, options);
  for (const float value : trained.parameters) REQUIRE(cuda::to_float(cuda::to_bf16(value)) == value);
  const Tensor norm = ParameterLayout(model).final_norm();
  const auto begin = trained.parameters.begin() + norm.begin;
  CHECK(std::any_of(begin, begin + norm.count, [](float weight) { return weight != 1; }));
  CHECK(trained.losses.back() < trained.losses.front());
}

TEST_CASE("the timeline of a device has every instruction, when the device ran it", "[exec][device]") {
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  Plan plan = plan_on(2);
  for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.offload = 1;
  const Timeline on_cpu = train(model, {plan}, *tokens).timelines.at(0);
  const Timeline timeline = train_on_device(model, {plan}, *tokens, {}, {.element = Element::bf16}).timelines.at(0);
  REQUIRE(timeline.ranks.size() == 2);
  for (const Breakdown& rank : timeline.ranks) {
    CHECK(rank.total() == timeline.step_time);
    for (const Activity activity : {Activity::attention, Activity::linear, Activity::optimizer, Activity::grad_sync}) {
      CHECK(rank[activity] > Duration{});
    }
  }
  REQUIRE(timeline.instructions.size() == on_cpu.instructions.size());
  for (std::size_t i = 0; i < timeline.instructions.size(); ++i) {
    const InstructionRecord& record = timeline.instructions[i];
    CHECK(record.opcode == on_cpu.instructions[i].opcode);
    CHECK(record.begin <= record.end);
    CHECK(record.end.since_start() <= timeline.step_time);
  }
}

TEST_CASE("pipelines on a device that runs behind are refused", "[exec][device]") {
  const Transformer model = four_heads(2);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  CHECK_THROWS_WITH(train_on_device(model, {one_rank_plan(2, {9})}, *tokens, {.pp = 2}, {}),
                    "pipelines are executed on CPUs alone: use pp 1 on GPUs");
}

}  // namespace
}  // namespace hdpsim::kernels::exec
