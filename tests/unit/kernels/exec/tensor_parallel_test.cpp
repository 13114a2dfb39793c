#include "kernels/exec/executor.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

TEST_CASE("tensor-parallel devices have the loss and the gradients of fp64, in packs and in rings", "[exec][tp]") {
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step(mixed_lengths, 0, *tokens);
  for (const int tp : {1, 2, 4}) {
    for (const std::int64_t hdp : {1, 2}) {
      INFO("tp " << tp << ", hdp " << hdp);
      const Training trained = train(model, packs_and_rings(hdp, model.layers), *tokens, {.tp = tp});
      CHECK(trained.losses[0] == Approx(expected.loss).epsilon(1e-6));
      CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= rounding);
    }
  }
}

TEST_CASE("tied embeddings and key-value heads of several query heads are cut too", "[exec][tp]") {
  Transformer model = tiny_model();
  model.heads = 4;
  model.kv_heads = 2;
  model.tied_embeddings = true;
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Training one = train(model, one_rank_plan(model.layers, {30, 12}), *tokens, Way{});
  const Training two = train(model, hand_plan(2, model.layers, {30, 12}, {{{0, 1}, {0, 1}}}), *tokens, {.tp = 2});
  CHECK(test::relative_rms_error(two.gradients, one.gradients) <= rounding);
}

TEST_CASE("devices without a token or a word of their own have their part all the same", "[exec][tp]") {
  Transformer model = four_heads(1);
  model.vocabulary = 5;  // two words each: the last of four devices has none
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  for (const std::vector<std::int64_t>& few : {std::vector<std::int64_t>{2}, {1}, {5, 1}}) {
    const Training one = train(model, one_rank_plan(1, few), *tokens, Way{});
    const Training four = train(model, one_rank_plan(1, few), *tokens, {.tp = 4});
    CHECK(four.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    CHECK(test::relative_rms_error(four.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("training goes the same way on any number of tensor-parallel devices", "[exec][tp]") {
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  std::vector<Plan> plans(4, packs_and_rings(2, model.layers));
  for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
  const TrainingOptions options{.seed = 1, .adam = {.rate = 1e-3F}};
  const Training one = train(model, plans, *tokens, options);
  const Training two = train(model, plans, *tokens, options, default_time_limit, {.tp = 2});
  for (std::size_t step = 0; step < plans.size(); ++step) {
    CHECK(two.losses[step] == Approx(one.losses[step]).epsilon(1e-5));
  }
  const auto twice = train(model, plans, *tokens, options, default_time_limit, {.tp = 2});
  CHECK(twice.parameters == two.parameters);
}

TEST_CASE("what tensor-parallel devices cannot share is refused by name", "[exec][tp]") {
  Transformer model = tiny_model();
  model.ffn_hidden = 101;
  CHECK_THROWS_WITH(ParameterLayout(model, {0, 2}),
                    "model 'tiny' cannot be executed: its 1 key-value heads do not divide among 2 devices, its 101 "
                    "columns of its MLP do not divide among 2 devices");
  const auto executor_of = [](int tp) {
    run_ranks(3, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      const Executor executor(*backend, transport, four_heads(), TrainingOptions{.adam = {}, .tp = tp});
    });
  };
  CHECK_THROWS_WITH(executor_of(2), "3 ranks are no whole number of HDP ranks of 2 devices");
  const auto tokens = make_synthetic_tokens(61, 1);
  const auto run_as_tp_1 = [&] {
    run_ranks(2, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, four_heads(), TrainingOptions{.adam = {}, .tp = 2});
      const LoweringOptions lowering = lowering_for(*backend, four_heads(), {.hdp = 1});
      (void)executor.run_step(Program(one_rank_plan(2, {9}), lowering), *tokens);
    });
  };
  CHECK_THROWS_WITH(run_as_tp_1(), "the program is for tp 1, but ranks have 2 devices");
}

}  // namespace
}  // namespace hdpsim::kernels::exec
