#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "kernels/exec/executor.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/exec/requirements.h"
#include "kernels/spec/error.h"
#include "sim/model/layers.h"
#include "sim/plan/updates.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

using Catch::Matchers::Contains;

// Whoever ends only when this is over has ctest's limit end the test.
constexpr std::chrono::hours nearly_for_ever{10};

class FaultyTokens final : public TokenSource {
 public:
  explicit FaultyTokens(void (*fault)()) : fault_(fault) {}
  [[nodiscard]] std::int64_t vocabulary() const override { return 61; }
  void read(std::int64_t, std::int64_t sequence, std::int64_t, std::span<std::int32_t> tokens) const override {
    if (sequence == 1) fault_();
    std::fill(tokens.begin(), tokens.end(), 1);
  }

 private:
  void (*fault_)();
};

TEST_CASE("a plan for another number of ranks or another model is refused by name", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const auto run = [&](const Plan& plan, const TokenSource& source) {
    run_ranks(2, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model);
      const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = plan.ranks});
      (void)executor.run_step(Program(plan, lowering), source);
    });
  };
  CHECK_THROWS_WITH(run(hand_plan(3, 2, {9}, {{{0}, {0}}}), *tokens),
                    Contains("the plan is for 3 ranks, but there are 2"));
  CHECK_THROWS_WITH(run(hand_plan(2, 5, {9}, {{{0}, {0}}}), *tokens),
                    Contains("the plan is for a model of 5 layers, 'tiny' has 2"));
  CHECK_THROWS_WITH(
      run(joined_updates({hand_plan(2, 2, {9}, {{{0}, {0}}}), hand_plan(2, 2, {9}, {{{1}, {0}}})}), *tokens),
      Contains("the plan takes 2 optimizer steps from one batch, which is simulated, and not executed"));
  Plan padded = hand_plan(2, 2, {9}, {{{0}, {0}}});
  padded.micro_batches[0].spans[0].tokens = 16;
  padded.micro_batches[0].padded = true;
  CHECK_THROWS_WITH(run(padded, *tokens), Contains("the plan pads sequences, which is simulated, and not executed"));
  CHECK_THROWS_WITH(run(hand_plan(2, 2, {9}, {{{0}, {0}}}), *make_synthetic_tokens(99, 1)),
                    Contains("the data have a vocabulary of 99, 'tiny' has one of 61"));
}

TEST_CASE("all that a model has and the executor has not is named at once", "[exec]") {
  Transformer model = tiny_model();
  model.biases = true;
  model.learned_positions = 10;
  model.gated_mlp = false;
  model.head_dim = 36;
  CHECK_THROWS_WITH(ParameterLayout(model),
                    "model 'tiny' cannot be executed: it has biases, its MLP has no gate, its heads have dimension 36, "
                    "and values of 36: not 64, 128, 256, or 192 and 128, its positions are learned");
}

TEST_CASE("kinds of layers that have no kernels are refused by name", "[exec]") {
  const auto refused = [](const Transformer& model) {
    try {
      ParameterLayout layout(model);
    } catch (const UnsupportedInput& error) {
      return std::string(error.what()).substr(std::string("model 'tiny' cannot be executed: ").size());
    }
    return std::string();
  };
  Transformer gated = tiny_model();
  gated.gated_output = true;
  CHECK(refused(gated) == "its attention's output has a gate or a bias");
  Transformer mixed = tiny_model();
  set_layers(mixed, {mixed, gated});
  CHECK(refused(mixed) == "its attention's output has a gate or a bias");
  Transformer factored = tiny_model();
  factored.query_latent = 16;
  CHECK(refused(factored) == "its queries are made through a latent alone");
  Transformer narrow = tiny_model();
  narrow.moe = MixtureOfExperts{.experts = 4, .experts_per_token = 2, .expert_hidden = 8, .latent = 16};
  CHECK(refused(narrow) == "its experts work in a latent");
  Transformer indexed = tiny_model();
  indexed.latent = LatentAttention{.query_rank = 32, .kv_rank = 32, .rotated = 16};
  indexed.indexer = KeyIndexer{.heads = 2, .head_dim = 16, .keys = 64};
  CHECK(refused(indexed) == "an indexer chooses the keys that its tokens see");
  Transformer grouped = tiny_model();
  grouped.moe =
      MixtureOfExperts{.experts = 4, .experts_per_token = 2, .expert_hidden = 8, .groups = 2, .groups_per_token = 1};
  CHECK(refused(grouped) == "its router chooses groups of experts first");
  Transformer linear = tiny_model();
  linear.linear = LinearMixing{.heads = 2, .key_heads = 2, .key_dim = 64, .value_dim = 64, .chunk = 64, .inputs = 384};
  CHECK(refused(linear) == "its tokens are mixed in linear time, and not by lightning attention");
  Transformer further = tiny_model();
  further.predictions = 2;
  CHECK(refused(further) == "it predicts several tokens");
}

TEST_CASE("products that multiply other numbers than elements are not executed", "[exec]") {
  CHECK_THROWS_WITH(require_executable(Recipe{.products = ProductFormat::nvfp4}), Contains("leave kernels.linear out"));
}

// What every device says when it trains two steps, the first of which makes every parameter infinite.
std::vector<std::string> words_of_poisoned(const Transformer& model, const Plan& whole, const Way& way) {
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = planned_for(way, whole);
  std::mutex mutex;
  std::vector<std::string> said;
  run_ranks(static_cast<int>(way.mesh(plan.ranks).devices()), [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    const TrainingOptions poisoned{.seed = 1, .adam = {.rate = std::numeric_limits<float>::infinity()}};
    Executor executor(*backend, transport, model, options_for(way, poisoned));
    const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(plan.ranks));
    (void)executor.run_step(Program(plan, lowering), *tokens);
    try {
      (void)executor.run_step(Program(plan, lowering), *tokens);
    } catch (const DeviceError& error) {
      const std::lock_guard lock(mutex);
      said.emplace_back(error.what());
    }
  });
  return said;
}

TEST_CASE("a loss that is no number ends the step on every rank, before the parameters change", "[exec]") {
  const Plan plan = hand_plan(2, 2, {9, 9}, {{{0}, {0}}, {{1}, {1}}});
  for (const Way& way : {Way{}, Way{.pp = 2}}) {
    const std::vector<std::string> said = words_of_poisoned(tiny_model(), plan, way);
    REQUIRE(std::ssize(said) == way.mesh(2).devices());
    CHECK_THAT(said[0], Contains("the loss of step 0 is") && Contains("nan"));
    for (const std::string& word : said) CHECK(word == said[0]);
  }
}

// Rank 1 alone reads the second sequence, behind a ring of all three.
Plan plan_with_a_ring() {
  return hand_plan(3, 2, {30, 9}, {{{0, 1, 2}, {0}}, {{1}, {1}}});
}

TEST_CASE("a rank that fails ends the others", "[exec]") {
  const FaultyTokens failing([] { throw std::runtime_error("the data are gone"); });
  for (const Way& way : {Way{}, Way{.pp = 2}}) {
    INFO("pp " << way.pp);
    CHECK_THROWS_WITH(train(tiny_model(), {plan_with_a_ring()}, failing, {}, nearly_for_ever, way),
                      "the data are gone");
  }
}

std::atomic<bool> gave_up = false;  // some rank has ended with an error

TEST_CASE("the others give a rank up that hangs", "[exec]") {
  const Transformer model = tiny_model();
  const FaultyTokens hanging([] {
    while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  for (const Way& way : {Way{}, Way{.pp = 2}}) {
    INFO("pp " << way.pp);
    gave_up = false;
    const Plan plan = planned_for(way, plan_with_a_ring());
    const auto work = [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model, options_for(way));
      const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(plan.ranks));
      try {
        (void)executor.run_step(Program(plan, lowering), hanging);
      } catch (...) {
        gave_up = true;
        throw;
      }
    };
    CHECK_THROWS_WITH(run_ranks(static_cast<int>(way.mesh(plan.ranks).devices()), work, std::chrono::milliseconds(300)),
                      Contains("nothing has moved for 0.3 s"));
  }
}

/// Another source, read by all but one device, which waits for ever, or fails.
class StageTokens final : public TokenSource {
 public:
  StageTokens(int device, void (*fault)()) : device_(device), fault_(fault) {}
  static inline thread_local int own_device = 0;
  [[nodiscard]] std::int64_t vocabulary() const override { return 61; }
  void read(std::int64_t, std::int64_t sequence, std::int64_t, std::span<std::int32_t> tokens) const override {
    if (own_device == device_ && sequence == 2) fault_();
    std::fill(tokens.begin(), tokens.end(), 1);
  }

 private:
  int device_;
  void (*fault_)();
};

TEST_CASE("a stage that fails in the midst of a step ends the others at once, whichever it is", "[exec][pp]") {
  const Transformer model = tiny_model(3);
  const Way way{.pp = 3};
  const Plan plan =
      planned_for(way, hand_plan(1, 3, {20, 31, 9, 40}, {{{0}, {0}}, {{0}, {1}}, {{0}, {2}}, {{0}, {3}}}));
  for (const int device : {0, 1, 2}) {
    const StageTokens failing(device, [] { throw std::runtime_error("a stage is gone"); });
    const auto work = [&](Transport& transport) {
      StageTokens::own_device = transport.rank();
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model, options_for(way));
      const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(1));
      (void)executor.run_step(Program(plan, lowering), failing);
    };
    CHECK_THROWS_WITH(run_ranks(3, work, nearly_for_ever), "a stage is gone");
  }
}

}  // namespace
}  // namespace hdpsim::kernels::exec
