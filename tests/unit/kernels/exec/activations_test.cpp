#include "kernels/exec/impl/activations.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/exec/impl/copy_thread.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/work.h"
#include "tests/support/catch.h"
#include "tests/support/recompute_text.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr std::int64_t layers = 6;
constexpr std::int64_t tokens = 1000;

ModelChunk whole(const Transformer& model) {
  return {.layers = {0, model.layers}, .has_head = true};
}

struct Kept {
  double device = 0;
  double host = 0;
};

// Bytes of the activations of all layers of one document, on one device of `devices`.
Kept kept(const Transformer& model, const Keeping& keeping, int devices = 1) {
  const auto backend = make_cpu_backend();
  const auto source = make_synthetic_tokens(model.vocabulary, 1);
  GrowingMemory workspace(*backend);
  CopyThread copies;
  Activations activations(*backend, copies, model, {0, devices}, workspace);
  activations.begin(share_of(one_rank_plan(layers, {tokens}), MicroBatchId(0), 0, *source), whole(model), keeping);
  return {static_cast<double>(activations.layer_bytes()), static_cast<double>(activations.host_bytes())};
}

// What the simulator counts of a layer, in fp32: twice its bf16 elements, and the log-sum-exp once. Beside it the
// executor keeps two fp32 a token for the norms, and rounds each of twelve tensors up to 256 bytes.
double counted(const Transformer& model, Recompute recompute, int devices = 1) {
  const double lse =
      recompute.has(LayerModule::attention) ? 0 : static_cast<double>(tokens * model.heads) * sizeof(float) / devices;
  return 2 * (static_cast<double>(activation_bytes(model, tokens, devices, recompute).count()) - lse) + lse;
}
constexpr double beside = 2 * tokens * sizeof(float) + 12 * 256;

TEST_CASE("activations take the memory that the simulator counts", "[exec][memory]") {
  const Transformer model = tiny_model(layers);
  const double found = kept(model, {}).device;
  const double expected = layers * counted(model, Recompute::none);
  CHECK(found >= expected);
  CHECK(found <= expected + layers * beside);
}

TEST_CASE("what is computed again has room for one layer alone", "[exec][memory]") {
  const Transformer model = tiny_model(layers);
  const double one_layer = counted(model, Recompute::none);
  using enum LayerModule;
  for (const Recompute recompute :
       {Recompute::selective, Recompute::full, Recompute{norm}, Recompute{qkv}, Recompute{projection}, Recompute{mlp},
        Recompute{activation}, Recompute{norm, attention, mlp}}) {
    INFO(test::recompute_text(recompute));
    const double of_each = counted(model, recompute);
    const double expected = layers * of_each + (one_layer - of_each);
    const double found = kept(model, {.recompute = recompute}).device;
    CHECK(found >= expected);
    CHECK(found <= expected + layers * beside);
  }
  // Of 972 numbers a token that a layer keeps, 72 are its input.
  CHECK(kept(model, {.recompute = Recompute::full}).device < 0.25 * kept(model, {}).device);
}

TEST_CASE("what goes to the host leaves room for two layers on the device", "[exec][memory]") {
  const Transformer model = tiny_model(layers);
  const double one_layer = counted(model, Recompute::none);
  const Kept all = kept(model, {.offload = 1});
  const double input = static_cast<double>(tokens * model.hidden) * sizeof(float);
  CHECK(all.host >= (layers - 2) * one_layer);
  CHECK(all.host <= (layers - 2) * (one_layer + beside));
  CHECK(all.device >= 2 * one_layer + input);  // the third place of the input
  CHECK(all.device <= 2 * (one_layer + beside) + input + 256);

  // Whole tensors: the largest one of a layer may be missing from a half.
  const Kept half = kept(model, {.offload = 0.5});
  CHECK(half.host <= 0.5 * all.host);
  CHECK(half.host >=
        0.5 * all.host - (layers - 2) * static_cast<double>(2 * tokens * model.ffn_hidden) * sizeof(float));
  CHECK(half.device < kept(model, {}).device);

  const Kept inputs = kept(model, {.recompute = Recompute::full, .offload = 1});
  CHECK(inputs.host == (layers - 2) * input);
}

TEST_CASE("ranks that trade heads keep what they have traded, and attention's output twice",
          "[exec][memory][sharing]") {
  Transformer model = tiny_model(layers);
  model.kv_heads = model.heads;
  const auto backend = make_cpu_backend();
  const auto source = make_synthetic_tokens(model.vocabulary, 1);
  const Plan plan = hand_plan(2, layers, {tokens}, {{{0, 1}, {0}}});
  const auto bytes = [&](const GroupSharing& sharing, Recompute recompute) {
    GrowingMemory workspace(*backend);
    CopyThread copies;
    Activations activations(*backend, copies, model, {}, workspace);
    const Share share = share_of(plan, MicroBatchId(0), 0, *source, sharing);
    activations.begin(share, whole(model), {.recompute = recompute});
    return static_cast<std::int64_t>(activations.layer_bytes());
  };
  const GroupSharing ring{.parties = 2};
  const GroupSharing trades{.inner = 2};
  // Of half of the tokens with all heads, or all tokens with half of them: fp32 queries, or keys, values, outputs.
  const std::int64_t tensor = tokens / 2 * model.heads * model.head_dim * 4;
  // In place of its own queries, keys and values, of which one layer has some, a layer keeps the traded ones.
  CHECK(bytes(trades, {}) == bytes(ring, {}) + layers * tensor + 3 * tensor);
  // Traded again in backward, they all have room for one layer, and a layer keeps its own.
  CHECK(bytes(trades, Recompute::selective) == bytes(ring, Recompute::selective) + 4 * tensor);
}

TEST_CASE("models of two layers stay on the device", "[exec][memory]") {
  const auto backend = make_cpu_backend();
  const Transformer model = tiny_model(2);
  const auto source = make_synthetic_tokens(model.vocabulary, 1);
  GrowingMemory workspace(*backend);
  CopyThread copies;
  Activations activations(*backend, copies, model, {}, workspace);
  activations.begin(share_of(one_rank_plan(2, {tokens}), MicroBatchId(0), 0, *source), whole(model), {.offload = 1});
  CHECK(activations.host_bytes() == 0);
}

TEST_CASE("tensor-parallel devices share activations, but for the gathered inputs of products", "[exec][memory][tp]") {
  Transformer model = tiny_model(layers);
  model.heads = model.kv_heads = 2;
  for (const int devices : {1, 2}) {
    // Both norms' results are kept whole where the simulator counts a part.
    const double whole = static_cast<double>(2 * tokens * model.hidden) * sizeof(float);
    const double expected = layers * (counted(model, Recompute::none, devices) + whole - whole / devices);
    const double found = kept(model, {}, devices).device;
    CHECK(found >= expected);
    CHECK(found <= expected + layers * beside);
  }
}

}  // namespace
}  // namespace hdpsim::kernels::exec
