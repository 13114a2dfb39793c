#include "sim/model/lora.h"

#include <numeric>
#include <string>
#include <vector>

#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/memory.h"
#include "sim/model/parameters.h"
#include "sim/model/recipe.h"
#include "sim/model/work.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;
using enum AdapterTarget;

// Llama-3 8B: columns of the stream, of keys or values, and of the MLP.
constexpr std::int64_t adapted_hidden = 4096;
constexpr std::int64_t adapted_keys = 1024;
constexpr std::int64_t adapted_inner = 14'336;
constexpr std::int64_t adapted_matrices =
    2 * adapted_hidden * adapted_hidden + 2 * adapted_hidden * adapted_keys + 3 * adapted_hidden * adapted_inner;

Recipe adapted(AdapterTargets targets = AdapterTargets::all_linear, std::int64_t rank = 16) {
  return {.lora = {.rank = rank, .targets = targets}};
}

std::int64_t trained_of_llama(const Recipe& recipe, std::int64_t tp = 1) {
  const Transformer model = preset("llama3-8b");
  return trained_parameters(model, layer_runs(model), recipe, {}, tp).all();
}

double flops_of_layer(Direction direction, const Recipe& recipe, std::int64_t tokens) {
  const Transformer model = preset("llama3-8b");
  double sum = 0;
  for (const LinearPart& part :
       {before_attention(model, tokens, 1, direction, recipe), after_attention(model, tokens, 1, direction, recipe)}) {
    for (const Gemm& gemm : part.gemms) sum += flops_of(gemm).count();
  }
  return sum;
}

Bytes traffic_of_layer(Direction direction, const Recipe& recipe, std::int64_t tokens) {
  const Transformer model = preset("llama3-8b");
  return before_attention(model, tokens, 1, direction, recipe).traffic() +
         after_attention(model, tokens, 1, direction, recipe).traffic();
}

Bytes kept_by_layer(const Recipe& recipe, std::int64_t tokens) {
  return kept_bytes(kept_tensors(preset("llama3-8b"), recipe), {.tokens = tokens});
}

TEST_CASE("adapters of rank r have r parameters for each column of what products read and write", "[lora]") {
  // PEFT prints "trainable params: 41,943,040" for r = 16 and all linear layers of Llama-3 8B, and 6,815,744 for
  // r = 16 of queries and values.
  CHECK(trained_of_llama(adapted()) == 41'943'040);
  CHECK(trained_of_llama(adapted({q_proj, v_proj})) == 6'815'744);
  CHECK(trained_of_llama(adapted(AdapterTargets::all_linear, 64)) == 4 * 41'943'040);
  // Weights of one product share the adapter's first matrix.
  CHECK(trained_of_llama(adapted({linear_qkv, o_proj, linear_fc1, down_proj})) ==
        32 * 16 *
            ((adapted_hidden + adapted_hidden + 2 * adapted_keys) + (adapted_hidden + adapted_hidden) +
             (adapted_hidden + 2 * adapted_inner) + (adapted_inner + adapted_hidden)));
  // Of two devices each has half of the matrix that is cut as the weight is, and the other one whole.
  CHECK(trained_of_llama(adapted({q_proj}), 2) == 32 * 16 * (adapted_hidden + adapted_hidden / 2));
  CHECK(trained_of_llama(adapted({o_proj}), 2) == 32 * 16 * (adapted_hidden / 2 + adapted_hidden));
}

TEST_CASE("frozen products have no product for their weight's gradient, adapters have both", "[lora]") {
  constexpr std::int64_t tokens = 1000;
  const double once = 2.0 * static_cast<double>(tokens * adapted_matrices);
  const double adapters = 2.0 * static_cast<double>(tokens) * 41'943'040 / 32;
  REQUIRE(flops_of_layer(Direction::forward, {}, tokens) == once);
  CHECK(flops_of_layer(Direction::forward, adapted(), tokens) == once + adapters);
  CHECK(flops_of_layer(Direction::backward, adapted(), tokens) == once + 2 * adapters);
  const Transformer model = preset("llama3-8b");
  const double head = 2.0 * static_cast<double>(tokens * model.vocabulary * adapted_hidden);
  const LinearPart of_head = output_head(model, tokens, 1, Direction::backward, adapted());
  CHECK(std::accumulate(of_head.gemms.begin(), of_head.gemms.end(), 0.0,
                        [](double sum, const Gemm& gemm) { return sum + flops_of(gemm).count(); }) == head);
  CHECK(embedding(model, tokens, 1, Direction::backward, adapted()).traffic() == Bytes{});
  CHECK(training_linear_flops(model, tokens, 1, adapted()).count() == 32 * (2 * once + 3 * adapters) + 2 * head);
}

TEST_CASE("an adapter scales its output and adds it, and its input's gradient is added", "[lora]") {
  constexpr std::int64_t tokens = 1000;
  const auto more = [&](Direction direction, const Recipe& recipe) {
    return traffic_of_layer(direction, recipe, tokens) - traffic_of_layer(direction, {}, tokens);
  };
  CHECK(more(Direction::forward, adapted({down_proj})) == Bytes(2 * tokens * (2 + 3) * adapted_hidden));
  CHECK(more(Direction::backward, adapted({down_proj})) ==
        Bytes(2 * tokens * (2 * adapted_hidden + 3 * adapted_inner)));
  Recipe drops = adapted({down_proj});
  drops.lora.dropout = true;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    CHECK(more(direction, drops) - more(direction, adapted({down_proj})) ==
          Bytes(tokens * (2 + 2 + 1) * adapted_inner));
  }
}

TEST_CASE("weights in 4 bits are read and written as elements for every product", "[lora]") {
  Recipe quantized = adapted();
  quantized.lora.base = NumberType::nf4;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const Bytes more = traffic_of_layer(direction, quantized, 1000) - traffic_of_layer(direction, adapted(), 1000);
    CHECK(more == Bytes(adapted_matrices / 64 * (32 + 4) + 2 * adapted_matrices));
  }
  const Transformer model = preset("llama3-8b");
  CHECK(output_head(model, 1000, 1, Direction::forward, quantized).traffic() ==
        output_head(model, 1000, 1, Direction::forward, {}).traffic());
}

TEST_CASE("products keep their input for adapters alone, and adapters the rank's columns", "[lora]") {
  constexpr std::int64_t tokens = 1000;
  const auto less = [&](const Recipe& recipe) { return kept_by_layer({}, tokens) - kept_by_layer(recipe, tokens); };
  constexpr std::int64_t rank = 16;
  CHECK(kept_by_layer(adapted(), tokens) - kept_by_layer({}, tokens) == Bytes(2 * tokens * 7 * rank));
  // The MLP's input and that of its last product are for gradients of weights; attention's output is its own.
  CHECK(less(adapted({q_proj, v_proj})) == Bytes(2 * tokens * (adapted_hidden + adapted_inner - 2 * rank)));
  CHECK(less(adapted({down_proj})) == Bytes(2 * tokens * (adapted_hidden + adapted_hidden - rank)));
  Recipe drops = adapted({down_proj});
  drops.lora.dropout = true;
  CHECK(less(drops) == Bytes(2 * tokens * (2 * adapted_hidden - rank)) - Bytes(tokens * adapted_inner));
}

TEST_CASE("a frozen model has neither gradients nor an optimizer; its weights may be in 4 bits", "[lora]") {
  const Transformer model = preset("llama3-8b");
  const std::int64_t all = parameter_count(model);
  const std::int64_t adapters = trained_of_llama(adapted());
  const auto states = [&](const Recipe& recipe, std::int64_t pool) {
    return DeviceMemory(model, whole_shape(model, {.pool = pool}), recipe).states();
  };
  const MemoryParts plain = states(adapted(), 1);
  CHECK(plain[MemoryPart::parameters] == Bytes(2 * (all + adapters)));
  CHECK(plain[MemoryPart::gradients] == Bytes(4 * adapters));
  CHECK(plain[MemoryPart::optimizer] == Bytes(12 * adapters));
  CHECK(plain[MemoryPart::workspace] == Bytes{});
  Recipe quantized = adapted();
  quantized.lora.base = NumberType::nf4;
  quantized.parameters = NumberType::fp32;  // as PEFT keeps adapters
  const MemoryParts small = states(quantized, 1);
  const std::int64_t matrices = model.layers * adapted_matrices;
  const Bytes base(matrices / 64 * 36 + 2 * (all - matrices));  // 6.03 GB
  CHECK(small[MemoryPart::parameters] == base + Bytes(4 * adapters));
  CHECK(small[MemoryPart::optimizer] == Bytes(8 * adapters));
  CHECK(small[MemoryPart::workspace] == Bytes(2 * adapted_inner * adapted_hidden));  // one of them as elements
  // FSDP shards the frozen model, too, and has two layers in full.
  Recipe shards = adapted();
  shards.zero = 3;
  const std::int64_t two_layers = 2 * (layer_parameter_count(model) + adapters / model.layers);
  CHECK(states(shards, 8)[MemoryPart::parameters] == Bytes(2 * ((all + adapters) / 8 + two_layers)));
}

TEST_CASE("a head and a table that are frozen need no room for gradients", "[lora]") {
  const Transformer model = preset("llama3-8b");
  const auto head_of = [&](const Recipe& recipe) {
    const DeviceMemory device(model, {.layers = {}, .embedding = false}, recipe);
    return device.peak({.tokens = 100})[MemoryPart::head];
  };
  CHECK(head_of({}) - head_of(adapted()) == Bytes(2 * model.vocabulary * adapted_hidden));
}

}  // namespace
}  // namespace hdpsim
