#include <map>
#include <string>

#include "kernels/exec/executor.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/spec/error.h"
#include "sim/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

using Catch::Matchers::Contains;

// Layers that see all tokens take turns with others that see a window, have more heads of keys and a narrower MLP.
Transformer mixed_model(std::int64_t window, std::int64_t chunk = 0) {
  Transformer model = grouped_heads(4);
  model.name = "mixed";
  Layer narrow = static_cast<const Layer&>(model);
  narrow.kv_heads = 4;
  narrow.ffn_hidden = 60;
  narrow.window = window;
  narrow.attention_chunk = chunk;
  model.others = {narrow};
  model.pattern = {{1, 1}, {1, 0}, {1, 1}, {1, 0}};
  return model;
}

// Keys and values through latents; heads of queries and keys are wider than those of values.
Transformer latent_model(std::int64_t query_rank) {
  Transformer model = tiny_model();
  model.name = "latent";
  model.kv_heads = 2;
  model.head_dim = 192;
  model.value_dim = 128;
  model.latent = LatentAttention{.query_rank = query_rank, .kv_rank = 20, .rotated = 64};
  return model;
}

// A dense layer, and layers whose tokens go through two of five experts and, if `shared`, through one that all share.
Transformer expert_model(bool shared) {
  Transformer model = tiny_model(3);
  model.name = "experts";
  const Layer dense = static_cast<const Layer&>(model);
  model.ffn_hidden = 0;
  model.moe =
      MixtureOfExperts{.experts = 5, .experts_per_token = 2, .expert_hidden = 20, .shared_hidden = shared ? 12 : 0};
  model.others = {dense};
  model.pattern = {{1, 1}, {2, 0}};
  return model;
}

LinearMixing lightning(std::int64_t heads, std::int64_t dim) {
  return {.heads = heads,
          .key_heads = heads,
          .key_dim = dim,
          .value_dim = dim,
          .chunk = 64,
          .inputs = 4 * heads * dim,
          .parameters = heads * dim};
}

// Lightning attention in layers that take turns with others that see all tokens.
Transformer linear_model() {
  Transformer model = tiny_model(3);
  model.name = "linear";
  Layer mixing = static_cast<const Layer&>(model);
  mixing.heads = mixing.kv_heads = mixing.head_dim = 0;
  mixing.linear = lightning(3, 32);
  model.others = {mixing};
  model.pattern = {{1, 1}, {1, 0}, {1, 1}};
  return model;
}

// Layers that see all tokens, through latents, layers that see a window and layers that mix tokens in linear time; the
// first one is dense, the others have experts.
Transformer hybrid() {
  Transformer model = latent_model(24);
  model.name = "hybrid";
  model.layers = 5;
  Layer first = static_cast<const Layer&>(model);
  model.ffn_hidden = 0;
  model.moe = MixtureOfExperts{.experts = 6, .experts_per_token = 2, .expert_hidden = 24, .shared_hidden = 16};
  Layer windowed = static_cast<const Layer&>(tiny_model());
  windowed.window = 23;
  windowed.ffn_hidden = 0;
  windowed.moe = model.moe;
  Layer mixing = windowed;
  mixing.heads = mixing.kv_heads = mixing.head_dim = 0;
  mixing.window = 0;
  mixing.linear = lightning(2, 64);
  model.others = {first, windowed, mixing};
  model.pattern = {{1, 1}, {1, 2}, {1, 3}, {1, 0}, {1, 2}};
  return model;
}

// What a step of the batch gives in fp64.
ReferenceTransformer::Step expected(const Transformer& model, const TokenSource& tokens) {
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  auto step = ReferenceTransformer(model, start).step(mixed_lengths, 0, tokens);
  REQUIRE(step.least_choice > rounding);  // every processor chooses the same experts
  return step;
}

void check_is(const Training& found, const ReferenceTransformer::Step& step) {
  CHECK(found.losses[0] == Approx(step.loss).epsilon(1e-6));
  CHECK(test::relative_rms_error(found.gradients, step.gradients) <= rounding);
}

// Rings of all ranks, of some, and a rank alone.
Plan rings(std::int64_t ranks, std::int64_t layers) {
  if (ranks == 1) return one_rank_plan(layers, mixed_lengths);
  std::vector<std::size_t> all(static_cast<std::size_t>(ranks));
  std::iota(all.rbegin(), all.rend(), 0);
  return hand_plan(ranks, layers, mixed_lengths, {{all, {0, 1, 2, 3}}, {{1, 0}, {4, 5, 6, 7}}, {{0}, {8, 9}}});
}

TEST_CASE("layers of several kinds train in their order, as in fp64", "[exec][kinds]") {
  const Transformer model = mixed_model(0);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  for (const std::int64_t ranks : {1, 2, 3}) {
    INFO(ranks << " ranks");
    check_is(train(model, rings(ranks, model.layers), *tokens, {}), step);
  }
}

TEST_CASE("windows shorter and longer than a rank's parts are those of whole sequences", "[exec][kinds]") {
  for (const std::int64_t window : {1, 9, 40, 100}) {
    const Transformer model = mixed_model(window);
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    const auto step = expected(model, *tokens);
    for (const std::int64_t ranks : {1, 2, 5}) {
      INFO("a window of " << window << ", " << ranks << " ranks");
      check_is(train(model, rings(ranks, model.layers), *tokens, {}), step);
    }
  }
}

TEST_CASE("windows go with every way to share a sequence", "[exec][kinds]") {
  const Transformer model = mixed_model(17);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  const std::map<std::string, Way> ways = {
      {"gathered keys", {.key_exchange = KeyExchange::all_gather}},
      {"traded heads", {.key_exchange = KeyExchange::all_to_all}},
      {"a ring of pairs that trade heads", {.key_exchange = KeyExchange::all_to_all, .a2a_ranks = 2}},
  };
  for (const auto& [name, way] : ways) {
    for (const std::int64_t ranks : {2, 4}) {
      INFO(name << ", " << ranks << " ranks");
      check_is(train(model, rings(ranks, model.layers), *tokens, way), step);
    }
  }
}

TEST_CASE("windows go with tensor parallelism, pipelines and recomputation", "[exec][kinds]") {
  const Transformer model = mixed_model(17);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  PipelineOptions split;
  split.schedule = "zb-h1";
  PipelineOptions interleaved;
  interleaved.schedule = "interleaved";
  interleaved.virtual_stages = 2;
  const std::map<std::string, Way> ways = {
      {"tp 2", {.tp = 2}},
      {"all is recomputed", {.recompute = Recompute::full}},
      {"attention is recomputed", {.recompute = Recompute::selective}},
      {"two stages", {.pp = 2}},
      {"two stages, backward in two", {.pp = 2, .pipeline = split}},
      {"two stages of two chunks, tp 2", {.tp = 2, .pp = 2, .pipeline = interleaved}},
  };
  for (const auto& [name, way] : ways) {
    INFO(name);
    check_is(train(model, rings(2, model.layers), *tokens, way), step);
  }
}

TEST_CASE("the parameters of every kind of layer are those that are counted", "[exec][kinds]") {
  for (const Transformer& model : {mixed_model(9), latent_model(0), latent_model(24), expert_model(false),
                                   expert_model(true), linear_model(), hybrid()}) {
    INFO(model.name);
    CHECK(ParameterLayout(model).whole_count() == parameter_count(model));
  }
}

TEST_CASE("keys and values through latents have the gradients of fp64, on one rank and on many", "[exec][kinds]") {
  for (const std::int64_t query_rank : {0, 24}) {
    const Transformer model = latent_model(query_rank);
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    const auto step = expected(model, *tokens);
    for (const std::int64_t ranks : {1, 2, 3}) {
      INFO("queries of rank " << query_rank << ", " << ranks << " ranks");
      check_is(train(model, rings(ranks, model.layers), *tokens, {}), step);
    }
    for (const KeyExchange exchange : {KeyExchange::all_gather, KeyExchange::all_to_all}) {
      INFO("exchange " << static_cast<int>(exchange));
      check_is(train(model, rings(2, model.layers), *tokens, {.key_exchange = exchange}), step);
    }
    check_is(train(model, rings(2, model.layers), *tokens, {.recompute = Recompute::full}), step);
  }
}

TEST_CASE("experts inside a rank have the gradients of fp64", "[exec][kinds]") {
  for (const bool shared : {false, true}) {
    const Transformer model = expert_model(shared);
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    const auto step = expected(model, *tokens);
    for (const std::int64_t ranks : {1, 2, 3}) {
      INFO((shared ? "with" : "without") << " shared experts, " << ranks << " ranks");
      check_is(train(model, rings(ranks, model.layers), *tokens, {}), step);
    }
    const Recompute activation{LayerModule::activation};
    const Recompute experts{LayerModule::experts};
    for (const Recompute recompute : {activation, experts, Recompute::full}) {
      check_is(train(model, rings(2, model.layers), *tokens, {.recompute = recompute}), step);
    }
    check_is(train(model, rings(1, model.layers), *tokens, {.pp = 2}), step);
  }
}

TEST_CASE("lightning attention has the gradients of fp64, on one rank and on many", "[exec][kinds]") {
  const Transformer model = linear_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  for (const std::int64_t ranks : {1, 2, 3, 5}) {
    INFO(ranks << " ranks");
    check_is(train(model, rings(ranks, model.layers), *tokens, {}), step);
  }
  for (const KeyExchange exchange : {KeyExchange::all_gather, KeyExchange::all_to_all}) {
    INFO("exchange " << static_cast<int>(exchange));
    check_is(train(model, rings(2, model.layers), *tokens, {.key_exchange = exchange}), step);
  }
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    check_is(train(model, rings(2, model.layers), *tokens, {.recompute = recompute}), step);
  }
  check_is(train(model, rings(2, model.layers), *tokens, {.pp = 3}), step);
}

TEST_CASE("a hybrid of latents, windows, linear mixing and experts trains on 1, 2 and 4 ranks as in fp64",
          "[exec][kinds]") {
  const Transformer model = hybrid();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  for (const std::int64_t ranks : {1, 2, 4}) {
    INFO(ranks << " ranks");
    check_is(train(model, rings(ranks, model.layers), *tokens, {}), step);
    check_is(train(model, rings(ranks, model.layers), *tokens, {.key_exchange = KeyExchange::all_gather}), step);
  }
  check_is(train(model, rings(2, model.layers), *tokens, {.recompute = Recompute::full, .pp = 2}), step);
}

TEST_CASE("ranks hold sequences alone beside those that their group shares, in layers of every kind", "[exec][kinds]") {
  const Transformer model = hybrid();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  const auto whole = [](std::size_t sequence) { return Span{SequenceId(sequence), 0, mixed_lengths[sequence]}; };
  Plan plan = hand_plan(2, model.layers, mixed_lengths, {{{1, 0}, {0, 7, 2, 9}}, {{0}, {1, 3, 4, 5, 6, 8}}});
  MicroBatch& shared = plan.micro_batches[0];
  shared.spans = {whole(0), whole(7)};
  shared.local = {{0, {whole(2)}}, {1, {whole(9)}}};
  REQUIRE(check_plan(plan).empty());
  for (const KeyExchange exchange : {KeyExchange::ring, KeyExchange::all_gather}) {
    INFO("exchange " << static_cast<int>(exchange));
    check_is(train(model, plan, *tokens, {.key_exchange = exchange}), step);
  }
}

TEST_CASE("chunks of a sequence in order see the window of those before them", "[exec][kinds]") {
  const Transformer model = mixed_model(40);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  const Plan plan = policy_plan("chunkflow: {chunk_size: 32, kept_chunks: 1}", 2, model.layers, 160, mixed_lengths);
  check_is(train(model, plan, *tokens, {}), step);
  const Transformer linear = linear_model();
  const Plan refused = policy_plan("chunkflow: {chunk_size: 32, kept_chunks: 1}", 2, linear.layers, 160, mixed_lengths);
  CHECK_THROWS_WITH(train(linear, refused, *tokens, {}), Contains("chunks of a sequence in order"));
}

TEST_CASE("latents and experts are refused where there is no way to run them", "[exec][kinds]") {
  PipelineOptions split;
  split.schedule = "zb-h1";
  for (const Transformer& model : {latent_model(24), expert_model(true), linear_model()}) {
    INFO(model.name);
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    CHECK_THROWS_WITH(train(model, rings(1, model.layers), *tokens, {.tp = 2}), Contains("with tp 1 alone"));
    CHECK_THROWS_WITH(train(model, rings(1, model.layers), *tokens, {.pp = 2, .pipeline = split}), Contains("1f1b"));
  }
}

TEST_CASE("chunks of attention are executed on one rank and with gathered keys, and refused on a ring",
          "[exec][kinds]") {
  const Transformer model = mixed_model(0, 24);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const auto step = expected(model, *tokens);
  check_is(train(model, rings(1, model.layers), *tokens, {}), step);
  for (const std::int64_t ranks : {2, 3}) {
    check_is(train(model, rings(ranks, model.layers), *tokens, {.key_exchange = KeyExchange::all_gather}), step);
  }
  CHECK_THROWS_WITH(train(model, rings(2, model.layers), *tokens, {}), Contains("cp_comm_type: all_gather"));
}

TEST_CASE("layers of one kind with latents and experts may have their activations on the host", "[exec][kinds]") {
  Transformer model = latent_model(24);
  model.layers = 4;  // two of them stay on the device
  model.ffn_hidden = 0;
  model.moe = MixtureOfExperts{.experts = 5, .experts_per_token = 2, .expert_hidden = 20, .shared_hidden = 12};
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  Plan plan = rings(2, model.layers);
  const Training kept = train(model, plan, *tokens, {});
  check_is(kept, expected(model, *tokens));
  for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.offload = 1;
  CHECK((train(model, plan, *tokens, {}).gradients == kept.gradients));  // too many to print
}

TEST_CASE("plans that offload are refused for layers of several kinds", "[exec][kinds]") {
  const Transformer model = mixed_model(9);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  Plan plan = rings(1, model.layers);
  plan.micro_batches[0].offload = 0.5;
  CHECK_THROWS_WITH(train(model, plan, *tokens, {}), Contains("offload: none"));
}

}  // namespace
}  // namespace hdpsim::kernels::exec
