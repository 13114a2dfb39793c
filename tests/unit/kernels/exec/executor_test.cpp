#include "kernels/exec/executor.h"

#include <atomic>

#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

TEST_CASE("gradients and loss are those of the whole batch in fp64", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step(mixed_lengths, 0, *tokens);

  const Training one = train(model, {one_rank_plan(model.layers, mixed_lengths)}, *tokens);
  CHECK(one.losses[0] == Approx(expected.loss).epsilon(1e-6));
  CHECK(test::relative_rms_error(one.gradients, expected.gradients) <= rounding);

  const Plan ring =
      hand_plan(3, model.layers, mixed_lengths, {{{2, 0, 1}, {0, 1, 2, 3}}, {{1, 2}, {4, 5, 6, 7}}, {{0}, {8, 9}}});
  const Training three = train(model, {ring}, *tokens);
  CHECK(three.losses[0] == Approx(expected.loss).epsilon(1e-6));
  CHECK(test::relative_rms_error(three.gradients, expected.gradients) <= rounding);
}

TEST_CASE("tied embeddings gather the gradients of both their uses", "[exec]") {
  Transformer model = tiny_model(1);
  model.tied_embeddings = true;
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step({30, 12}, 0, *tokens);
  const Training trained = train(model, {hand_plan(2, 1, {30, 12}, {{{0, 1}, {0, 1}}})}, *tokens);
  CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= rounding);
}

TEST_CASE("every policy on any number of ranks has the gradients of one rank", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, {one_rank_plan(model.layers, mixed_lengths)}, *tokens);
  for (const std::int64_t ranks : {1, 3, 8}) {
    for (const char* const policy : {"static", "hdp-naive", "hdp-balance"}) {
      INFO(policy << " on " << ranks << " ranks");
      const std::int64_t capacity = 66 / ranks + 17;
      const Plan plan = policy_plan(policy, ranks, model.layers, capacity, mixed_lengths);
      const Training many = train(model, {plan}, *tokens);
      CHECK(test::relative_rms_error(many.gradients, one.gradients) <= rounding);
      CHECK(many.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    }
  }
}

TEST_CASE("unequal numbers of micro-batches weigh every token the same", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, {one_rank_plan(model.layers, {40, 3, 3, 3, 9})}, *tokens);
  const Plan plan = hand_plan(3, model.layers, {40, 3, 3, 3, 9},
                              {{{0}, {0}}, {{1}, {1}}, {{1}, {2}}, {{1}, {3}}, {{1}, {4}}});  // rank 2 has nothing
  const Training three = train(model, {plan}, *tokens);
  CHECK(test::relative_rms_error(three.gradients, one.gradients) <= rounding);
  CHECK(three.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
}

TEST_CASE("a sequence shorter than its ring leaves ranks without a token", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, {one_rank_plan(model.layers, {2, 1})}, *tokens);
  const Training five = train(model, {hand_plan(5, model.layers, {2, 1}, {{{0, 1, 2, 3, 4}, {0, 1}}})}, *tokens);
  CHECK(test::relative_rms_error(five.gradients, one.gradients) <= rounding);
}

TEST_CASE("random plans of random batches have the gradients of one rank", "[exec][property]") {
  const Transformer model = tiny_model();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    INFO("replay: seed " << seed);
    RandomStream random(seed, "execution");
    std::vector<std::int64_t> drawn(1 + random.below(8));
    for (std::int64_t& length : drawn) length = 1 + static_cast<std::int64_t>(random.below(70));
    const auto ranks = 1 + static_cast<std::int64_t>(random.below(8));
    const Plan plan = random_plan(random, ranks, model.layers, drawn);
    const auto tokens = make_synthetic_tokens(model.vocabulary, seed);
    const Training one = train(model, {one_rank_plan(model.layers, drawn)}, *tokens);
    const Training many = train(model, {plan}, *tokens);
    CHECK(test::relative_rms_error(many.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("training goes the same way under every policy, and down", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  std::vector<std::vector<double>> losses;
  for (const char* const policy : {"static", "hdp-naive", "hdp-balance"}) {
    std::vector<Plan> plans(6, policy_plan(policy, 4, model.layers, 50, mixed_lengths));
    for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
    losses.push_back(train(model, plans, *tokens, {.seed = 1, .adam = {.rate = 1e-3F}}).losses);
  }
  CHECK(losses[0].back() < losses[0].front() - 0.02);
  for (std::size_t step = 0; step < losses[0].size(); ++step) {
    INFO("step " << step);
    CHECK(losses[1][step] == Approx(losses[0][step]).epsilon(1e-5));
    CHECK(losses[2][step] == Approx(losses[0][step]).epsilon(1e-5));
  }
}

TEST_CASE("training takes the way that fp64 takes", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 8);
  const TrainingOptions options{.seed = 2, .adam = {.rate = 0.002F, .epsilon = 1e-6F, .decay = 0.1F}};
  const auto count = static_cast<std::size_t>(ParameterLayout(model).count());
  std::vector<float> start(count);
  ParameterLayout(model).initial_values(options.seed, 0, start);
  std::vector<double> master(start.begin(), start.end());
  std::vector<double> first_moment(count);
  std::vector<double> second_moment(count);
  std::vector<Plan> plans(5, hand_plan(2, model.layers, {60, 31}, {{{0, 1}, {0}}, {{1}, {1}}}));
  std::vector<double> expected;
  for (std::size_t step = 0; step < plans.size(); ++step) {
    plans[step].step = static_cast<std::int64_t>(step);
    const std::vector<float> rounded(master.begin(), master.end());
    const auto taken = ReferenceTransformer(model, rounded).step({60, 31}, plans[step].step, *tokens);
    expected.push_back(taken.loss);
    const Adam adam{.step = plans[step].step + 1,
                    .rate = options.adam.rate,
                    .beta1 = options.adam.beta1,
                    .beta2 = options.adam.beta2,
                    .epsilon = options.adam.epsilon,
                    .decay = options.adam.decay};
    reference::adam(adam, master, first_moment, second_moment, taken.gradients);
  }
  const Training trained = train(model, plans, *tokens, options);
  // Adam divides by the size of the gradient: where that is near epsilon, rounding moves a parameter.
  for (std::size_t step = 0; step < plans.size(); ++step) {
    CHECK(trained.losses[step] == Approx(expected[step]).epsilon(1e-5));
  }
  CHECK(expected.back() < expected.front() - 0.05);
}

TEST_CASE("the same plan gives the same bits", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(3, model.layers, {50, 20, 31}, {{{0, 1, 2}, {0}}, {{2, 1}, {1}}, {{0}, {2}}});
  const Training first = train(model, {plan, plan}, *tokens);
  const Training second = train(model, {plan, plan}, *tokens);
  CHECK(first.parameters == second.parameters);
  CHECK(first.losses == second.losses);
}

TEST_CASE("after one step every parameter has moved by the rate, in the direction of its gradient", "[exec]") {
  // Adam's first step: m / (1 - b1) = g, v / (1 - b2) = g^2, so p moves by rate x sign(g), but for epsilon.
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const TrainingOptions options{.seed = 4, .adam = {.rate = 0.01F, .epsilon = 0}};
  const Training trained = train(model, {hand_plan(3, 1, {50, 20}, {{{0, 1, 2}, {0, 1}}})}, *tokens, options);
  std::vector<float> start(trained.parameters.size());
  ParameterLayout(model).initial_values(4, 0, start);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const float gradient = trained.gradients[i];
    const float expected = gradient > 0 ? start[i] - 0.01F : gradient < 0 ? start[i] + 0.01F : start[i];
    // Without epsilon, a gradient of zero is 0 / 0; so small that its square is none, it is x / 0.
    if (std::abs(gradient) < 1e-15F) continue;
    if (!(std::abs(trained.parameters[i] - expected) <= 1e-6F)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("when one rank is asked to stop, all know", "[exec]") {
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(2, 1, {9}, {{{0, 1}, {0}}});
  std::atomic<int> told = 0;
  run_ranks(2, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Executor executor(*backend, transport, model);
    const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 2});
    if (executor.run_step(Program(plan, lowering), *tokens).stopped) told += 10;
    if (executor.run_step(Program(plan, lowering), *tokens, transport.rank() == 1).stopped) ++told;
  });
  CHECK(told == 2);
}

}  // namespace
}  // namespace hdpsim::kernels::exec
