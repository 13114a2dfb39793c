#include <vector>

#include "sim/model/kept_tensors.h"
#include "sim/model/layer_operations.h"
#include "sim/model/layers.h"
#include "sim/model/memory.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

constexpr std::int64_t batch = 1024;

double multiplied(const LinearPart& work) {
  double sum = 0;
  for (const Gemm& gemm : work.gemms) {
    sum += static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  }
  return sum;
}

LinearPart work_by(const Transformer& model, const Recipe& recipe, const std::vector<DensePart>& parts,
                   Direction direction) {
  return dense_work(model, batch, 1, parts, direction, recipe);
}

std::int64_t kept_of_token(const Transformer& model, const Recipe& recipe, std::int64_t tp = 1) {
  return kept_bytes(kept_tensors(model, recipe), {.tokens = batch, .tp = tp}).count() / batch;
}

constexpr auto all_kernels = {LayerKernels::fused, LayerKernels::eager, LayerKernels::compiled};

TEST_CASE("whoever writes a layer's kernels, its products are as large", "[model]") {
  using enum DensePart;
  const Transformer model = test::preset("llama3-8b");
  const double all = static_cast<double>(batch) * (2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336);
  for (const LayerKernels layers : all_kernels) {
    CHECK(multiplied(work_by(model, {.layers = layers}, {qkv, attention_output, mlp}, Direction::forward)) == all);
    CHECK(multiplied(work_by(model, {.layers = layers}, {qkv, attention_output, mlp}, Direction::backward)) == 2 * all);
  }
  CHECK(work_by(model, {}, {qkv, attention_output, mlp}, Direction::forward).gemms.size() == 4);
  CHECK(
      work_by(model, {.layers = LayerKernels::eager}, {qkv, attention_output, mlp}, Direction::forward).gemms.size() ==
      7);
}

TEST_CASE("per-operation recompute multiplies with every second weight again, and stops at the last product",
          "[model]") {
  using enum DensePart;
  const Transformer model = test::preset("llama3-8b");
  const Recipe recipe{.recompute = Recompute::per_operation, .layers = LayerKernels::compiled};
  const LinearPart again = work_by(model, recipe, {qkv_again, attention_output_again, mlp_again}, Direction::forward);
  CHECK(again.gemms == std::vector<Gemm>{{batch, 1024, 4096}, {batch, 4096, 4096}, {batch, 14336, 4096}});
  const LinearPart all = work_by(model, recipe, {qkv, attention_output, mlp}, Direction::forward);
  CHECK(multiplied(again) / multiplied(all) == Approx(0.3654).margin(1e-4));
  // Joined weights are one product each: the second of four, and the last one, before which it stops.
  const LinearPart joined = work_by(model, {.recompute = Recompute::per_operation},
                                    {qkv_again, attention_output_again, mlp_again}, Direction::forward);
  CHECK(joined.gemms == std::vector<Gemm>{{batch, 4096, 4096}});
}

TEST_CASE("per-operation recompute keeps outputs of operations", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const std::int64_t compiled = 2 * (4096 + 4096 + 1024 + 4096 + 14336) + 4 * 32;
  CHECK(kept_of_token(model, {.recompute = Recompute::per_operation, .layers = LayerKernels::compiled}) == compiled);
  // Eager mode keeps the output of the last product, which nobody reads.
  const Recipe eager{.recompute = Recompute::per_operation, .layers = LayerKernels::eager};
  CHECK(kept_of_token(model, eager) == compiled + 2 * 4096);
  // Tensor parallelism cuts all of it but that, and adds the sums over devices.
  CHECK(kept_of_token(model, eager, 8) == (compiled + 2 * 2 * 4096) / 8 + 2 * 4096);
}

TEST_CASE("eager layers keep what lies between their kernels", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const std::int64_t fused = kept_of_token(model, {});
  const std::int64_t eager = kept_of_token(model, {.layers = LayerKernels::eager});
  // An fp32 copy of both norms' inputs instead of them and what the weight multiplies; the activated gate.
  CHECK(eager - fused == 2 * 4 * 4096 + 2 * 14336);
  Transformer repeated = model;
  repeat_keys(repeated);
  CHECK(kept_of_token(repeated, {}) - fused == 2 * 2 * (4096 - 1024));
  CHECK(kept_of_token(model, {.recompute = Recompute::full, .layers = LayerKernels::eager}) == 2 * 4096);
  CHECK(kept_of_token(model, {.layers = LayerKernels::eager, .fused_norms = true}) - fused == 2 * 14336);
}

TEST_CASE("an eager norm moves 36 bytes an element forward and 92 backward", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const auto norm = [&](LayerKernels layers, Direction direction) {
    return work_by(model, {.layers = layers}, {DensePart::attention_norm}, direction);
  };
  const std::int64_t elements = batch * 4096;
  CHECK(norm(LayerKernels::eager, Direction::forward).traffic() == Bytes(36 * elements));
  CHECK(norm(LayerKernels::eager, Direction::forward).launches() == 8);
  // With the sum of both gradients.
  CHECK(norm(LayerKernels::eager, Direction::backward).traffic() == Bytes((92 + 6) * elements));
  CHECK(norm(LayerKernels::compiled, Direction::backward).traffic() == Bytes(12 * elements));
}

TEST_CASE("keys are repeated in kernels of their own, and exchanged so", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  Transformer repeated = model;
  repeat_keys(repeated);
  const auto inputs = [&](const Transformer& kind) { return work_by(kind, {}, {DensePart::qkv}, Direction::forward); };
  CHECK(inputs(repeated).traffic() - inputs(model).traffic() == Bytes(2 * batch * 2 * (1024 + 4096)));
  CHECK(kv_bytes(repeated, batch, 8) == 4 * kv_bytes(model, batch, 8));
}

TEST_CASE("a loss costs and holds what its form says", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const std::int64_t logits = batch * model.vocabulary;
  const auto traffic = [&](Loss loss, Direction direction) {
    return work_by(model, {.loss = loss}, {DensePart::head}, direction).traffic();
  };
  CHECK(traffic(Loss::pytorch, Direction::forward) == Bytes((2 + 5 * 4) * logits));
  CHECK(traffic(Loss::pytorch, Direction::backward) == Bytes((2 + 6 * 4) * logits));
  CHECK(traffic(Loss::cut, Direction::backward) == Bytes{});
  const std::int64_t weights = 4096 * model.vocabulary;
  CHECK(traffic(Loss::chunked, Direction::backward) == Bytes((2 + 6 * 4) * logits + 7 * 3 * 2 * weights));
  const auto held = [&](Loss loss) {
    const DeviceMemory device(model, whole_shape(model, {}), {.loss = loss, .fragmentation = 0, .reserve = Bytes{}});
    return device.peak({.tokens = batch})[MemoryPart::head];
  };
  const Bytes without = held(Loss::cut);
  CHECK(held(Loss::fused) - without == Bytes(2 * logits));
  CHECK(held(Loss::fp32) - without == Bytes(6 * logits));
  CHECK(held(Loss::huggingface) - without == Bytes(14 * logits));
  CHECK(held(Loss::chunked) - without == Bytes(12 * logits / 8));
  CHECK(held(Loss::checkpointed) - without == Bytes(12 * 256 * model.vocabulary));
  CHECK(held(Loss::liger) - without == Bytes(2 * 32 * model.vocabulary));  // 1024 / 32, where 32 is 128,256 / 4,096
}

TEST_CASE("a loss over tensor-parallel devices is computed operator by operator", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const std::int64_t logits = batch * model.vocabulary / 8;
  const auto traffic = [&](LayerKernels layers, Direction direction) {
    const Recipe recipe{.loss = Loss::pytorch, .layers = layers};
    return dense_work(model, batch, 8, {DensePart::head}, direction, recipe).traffic();
  };
  const auto held = [&](Loss loss, LayerKernels layers) {
    const Recipe recipe{.loss = loss, .layers = layers, .fragmentation = 0, .reserve = Bytes{}};
    const DeviceMemory device(model, whole_shape(model, {.tp = 8}), recipe);
    return device.peak({.tokens = batch})[MemoryPart::head];
  };
  using enum LayerKernels;
  CHECK(traffic(eager, Direction::forward) == Bytes((2 + 9 * 4) * logits));
  CHECK(traffic(eager, Direction::backward) == Bytes((2 + 9 * 4) * logits));
  CHECK(traffic(fused, Direction::forward) == Bytes((2 + 5 * 4) * logits));
  CHECK(held(Loss::pytorch, eager) - held(Loss::cut, eager) == Bytes(16 * logits));
  CHECK(held(Loss::pytorch, fused) - held(Loss::cut, fused) == Bytes(12 * logits));
}

TEST_CASE("a loss that is checkpointed multiplies once more in backward", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const auto products = [&](Loss loss) {
    return work_by(model, {.loss = loss}, {DensePart::head}, Direction::backward).gemms.size();
  };
  CHECK(products(Loss::pytorch) == 2);
  CHECK(products(Loss::checkpointed) == 3);
}

TEST_CASE("FSDP2 copies what it gathers and reduces", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const auto traffic = [&](Direction direction, Recipe recipe) {
    recipe.zero = 3;
    return work_by(model, recipe, {DensePart::attention_output}, direction).traffic().count();
  };
  const std::int64_t weights = 4096 * 4096;
  const Recipe recipe{.reduces_fp32 = true, .parameter_shards = true};
  const Recipe none{.parameter_shards = true};
  CHECK(traffic(Direction::forward, recipe) == 4 * weights);
  CHECK(traffic(Direction::backward, recipe) == (4 + 6) * weights);
  CHECK(traffic(Direction::backward, none) == (4 + 4) * weights);
}

TEST_CASE("torchao casts inputs, weights and gradients in each product", "[model]") {
  const Transformer model = test::preset("llama3-8b");
  const auto traffic = [&](const Recipe& recipe, Direction direction) {
    return work_by(model, recipe, {DensePart::attention_output}, direction).traffic().count();
  };
  const std::int64_t tensor = batch * 4096;
  const std::int64_t weights = 4096 * 4096;
  Recipe recipe{.products = ProductFormat::fp8_current, .layers = LayerKernels::eager};
  CHECK(traffic(recipe, Direction::forward) == 33 * (tensor + weights));
  CHECK(traffic(recipe, Direction::backward) == 33 * (3 * tensor + weights) + 2 * (2 * tensor + weights));
  recipe.layers = LayerKernels::compiled;
  CHECK(traffic(recipe, Direction::forward) == 5 * (tensor + weights));
  CHECK(traffic(recipe, Direction::backward) == 5 * tensor + 3 * (tensor + weights));
  recipe.gathered = NumberType::fp8;
  CHECK(traffic(recipe, Direction::forward) == 5 * tensor);
  // What products read is kept in bf16.
  CHECK(kept_of_token(model, recipe) == kept_of_token(model, {.layers = LayerKernels::compiled}));
}

}  // namespace
}  // namespace hdpsim
