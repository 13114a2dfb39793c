#include "sim/model/memory.h"
#include "sim/model/kept_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/model/sharing_form.h"
#include "sim/model/work.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

// Korthikanti et al. 2022 (arXiv 2205.05198), table 3: s = 2048, t = 8 throughout.
struct Korthikanti {
  const char* model;
  std::int64_t micro_batch;
};
constexpr Korthikanti korthikanti[] = {{"gpt-22b", 4}, {"gpt-175b", 1}, {"gpt-530b", 1}, {"gpt-1t", 1}};
constexpr std::int64_t s = 2048;
constexpr std::int64_t t = 8;

Recipe as_published(Recompute recompute, bool sequence_parallel) {
  return {.recompute = recompute, .sequence_parallel = sequence_parallel, .flash_attention = false, .dropout = true};
}

// Bytes of one layer over s b h.
double per_element(const Transformer& model, std::int64_t b, std::int64_t tp, const Recipe& recipe) {
  const Bytes bytes =
      kept_bytes(kept_tensors(model, recipe), {.tokens = s * b, .tp = tp, .pairs = static_cast<double>(s * s * b)});
  return static_cast<double>(bytes.count()) / static_cast<double>(s * b * model.hidden);
}

TEST_CASE("a GPT layer keeps what table 2 of Korthikanti et al. states, in all its variants", "[memory]") {
  for (const Korthikanti& row : korthikanti) {
    CAPTURE(row.model);
    const Transformer model = preset(row.model);
    const double scores =
        5 * static_cast<double>(model.heads) * static_cast<double>(s) / static_cast<double>(model.hidden);
    const std::int64_t b = row.micro_batch;
    CHECK(per_element(model, b, 1, as_published(Recompute::none, false)) == Approx(34 + scores));
    CHECK(per_element(model, b, t, as_published(Recompute::none, false)) == Approx(10 + 24.0 / t + scores / t));
    CHECK(per_element(model, b, t, as_published(Recompute::none, true)) == Approx(34.0 / t + scores / t));
    CHECK(per_element(model, b, t, as_published(Recompute::selective, false)) == Approx(10 + 24.0 / t));
    CHECK(per_element(model, b, t, as_published(Recompute::selective, true)) == Approx(34.0 / t));
    CHECK(per_element(model, b, t, as_published(Recompute::full, false)) == Approx(2));
  }
}

TEST_CASE("in fp8 a layer keeps products' inputs in a byte an element, and attention's output twice", "[memory]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t tokens = 1024;
  const auto kept = [&](ProductFormat format) {
    return kept_bytes(kept_tensors(model, {.products = format}), {.tokens = tokens});
  };
  // The inputs of QKV, of the MLP and of its last product take a byte less, that of the projection a byte more.
  const Bytes in_fp8 = kept(ProductFormat::fp8);
  CHECK(kept(ProductFormat::elements) - in_fp8 == Bytes(tokens * (2 * model.hidden + model.ffn_hidden - model.hidden)));
  CHECK(kept(ProductFormat::fp8_current) == in_fp8);
  // Scales: four bytes for 128 columns, or one for 32.
  const Bytes scales(tokens * (3 * model.hidden + model.ffn_hidden) / 32);
  CHECK(kept(ProductFormat::fp8_blocks) == in_fp8 + scales);
  CHECK(kept(ProductFormat::mxfp8) == in_fp8 + scales);
  // Half a byte less, and a byte for 16 columns.
  CHECK(kept(ProductFormat::nvfp4) == in_fp8 - scales * 32 / 2 + scales * 2);
}

TEST_CASE("token-wise offload moves a layer's input and attention's output whole", "[memory]") {
  // Of a GPT layer's 16 values a hidden element (MEMO, Zhao et al. 2024, section 3) one is its input, one attention's
  // output; flash attention's log-sum-exp, 4 bytes a head, goes with it.
  const Transformer model = preset("gpt-530b");
  const std::vector<KeptTensor> kept = kept_tensors(model, {});
  const std::int64_t tokens = 1024;
  const std::int64_t value = tokens * model.hidden * 2;
  const std::int64_t log_sum_exp = tokens * model.heads * 4;
  REQUIRE(kept_bytes(kept, {.tokens = tokens}) == Bytes(16 * value + log_sum_exp));
  for (const std::int64_t tp : {1, 8}) {
    CHECK(token_wise_bytes(kept, {.tokens = tokens, .tp = tp}, 0) == Bytes((2 * value + log_sum_exp) / tp));
    CHECK(token_wise_bytes(kept, {.tokens = tokens, .tp = tp}, 0.25) ==
          Bytes((2 * value + 14 * value / 4 + log_sum_exp) / tp));
    CHECK(token_wise_bytes(kept, {.tokens = tokens, .tp = tp}, 1) == kept_bytes(kept, {.tokens = tokens, .tp = tp}));
  }
}

TEST_CASE("sequence parallelism and selective recompute together save a factor of about five, as published",
          "[memory]") {
  for (const Korthikanti& row : korthikanti) {
    CAPTURE(row.model);
    const Transformer model = preset(row.model);
    const double saved = per_element(model, 1, t, as_published(Recompute::none, false)) /
                         per_element(model, 1, t, as_published(Recompute::selective, true));
    CHECK(saved > 4.9);
    CHECK(saved < 6.3);
  }
}

TEST_CASE("with flash attention a layer keeps q, k, v, o and the log-sum-exp instead of scores", "[memory]") {
  const Transformer model = preset("llama3-8b");
  const std::vector<KeptTensor> tensors = kept_tensors(model, {});
  const auto bytes = [&](std::string_view name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& kept) { return kept.name == name; });
    REQUIRE(found != tensors.end());
    return found->bytes_per_token;
  };
  CHECK(bytes("queries") == 2 * 4096);
  CHECK(bytes("keys") == 2 * 8 * 128);
  CHECK(bytes("values") == 2 * 8 * 128);
  CHECK(bytes("output of attention") == 2 * 4096);
  CHECK(bytes("log-sum-exp") == 4 * 32);
  CHECK(bytes("input of the activation") == 2 * 2 * 14'336);  // gate and up
  CHECK(std::none_of(tensors.begin(), tensors.end(), [](const auto& kept) { return kept.bytes_per_pair > 0; }));
  CHECK(kept_bytes(tensors, {.tokens = 8192, .tp = 4}) == activation_bytes(model, 8192, 4));
}

TEST_CASE("a norm of queries and keys keeps its input beside what attention keeps of its output", "[memory]") {
  // Norms of each head, with fewer heads of keys, and norms of the whole width.
  for (const std::string name : {"qwen3-32b", "qwen3-30b-a3b", "gemma-3-27b", "olmo-2-13b", "qwen3-next-80b-a3b"}) {
    CAPTURE(name);
    const Transformer model = of_attention(preset(name));
    REQUIRE(model.qk_norm);
    Transformer without = model;
    without.qk_norm = false;
    const auto added = [&](const Recompute& recompute, std::int64_t tp) {
      const auto kept = [&](const Transformer& of) {
        return kept_bytes(kept_tensors(of, {.recompute = recompute}), {.tokens = 1024, .tp = tp});
      };
      return kept(model) - kept(without);
    };
    const Bytes inputs(1024 * 2 * (model.heads + model.kv_heads) * model.head_dim);
    CHECK(added(Recompute::none, 1) == inputs);
    CHECK(added(Recompute::none, 4) == Bytes(inputs.count() / 4));
    // Megatron-LM's `layernorm` is the norms around the two branches, and `core_attn` begins behind these.
    CHECK(added({LayerModule::norm, LayerModule::attention, LayerModule::mlp}, 1) == inputs);
    CHECK(added({LayerModule::qkv}, 1) == Bytes{});
    CHECK(added(Recompute::full, 1) == Bytes{});
  }
}

TEST_CASE("a group that trades heads keeps attention's output as attention wrote it, and as its projection reads it",
          "[memory]") {
  const Transformer model = preset("llama3-8b");
  const std::int64_t tokens = 8192;
  const Bytes output(tokens * 2 * model.heads * model.head_dim);
  const auto second = [&](const Recipe& recipe) {
    const std::vector<KeptTensor> tensors = kept_tensors(model, recipe);
    return kept_bytes(tensors, {.tokens = tokens, .trades_heads = true}) - kept_bytes(tensors, {.tokens = tokens});
  };
  CHECK(second({}) == output);
  CHECK(second({.products = ProductFormat::fp8}) == Bytes{});  // the projection keeps a cast anyway
  CHECK(second({.recompute = Recompute::selective}) == Bytes{});
  CHECK(second({.recompute = Recompute{LayerModule::projection}}) == Bytes{});
  const DeviceMemory device(model, whole_shape(model, {}), {.key_exchange = KeyExchange::all_to_all});
  const auto kept = [&](std::int64_t ranks) { return device.kept({.tokens = tokens, .ranks = ranks}); };
  CHECK(kept(4) == kept(1) + output * model.layers);
  CHECK(kept(3) == kept(1));  // 8 key-value heads cannot be dealt to 3 ranks
}

TEST_CASE("selective recompute drops the log-sum-exp of flash attention, full recompute all but the layer's input",
          "[memory]") {
  const Transformer model = preset("llama3-8b");
  const std::int64_t tokens = 8192;
  const auto kept = [&](const Recipe& recipe) { return kept_bytes(kept_tensors(model, recipe), {.tokens = tokens}); };
  const Bytes all = kept({});
  const Bytes log_sum_exp(tokens * 4 * model.heads);
  const Bytes output(tokens * 2 * model.heads * model.head_dim);
  // The projection reads attention's output for the gradient of its weight.
  CHECK(kept({.recompute = Recompute::selective}) == all - log_sum_exp);
  CHECK(kept({.recompute = Recompute{LayerModule::attention, LayerModule::projection}}) ==
        kept({.recompute = Recompute{LayerModule::projection}}) - log_sum_exp - output);
  // In fp8 it reads a cast.
  CHECK(kept({.recompute = Recompute::selective, .products = ProductFormat::fp8}) ==
        kept({.products = ProductFormat::fp8}) - log_sum_exp - output);
  CHECK(kept({.recompute = Recompute::full}) == Bytes(tokens * 2 * model.hidden));
  // The layer at work has all of it: with two layers or more recomputation still saves.
  const DeviceShape shape = whole_shape(model, {});
  const MemoryParts none = DeviceMemory(model, shape, {}).peak({.tokens = tokens});
  const MemoryParts full = DeviceMemory(model, shape, {.recompute = Recompute::full}).peak({.tokens = tokens});
  CHECK(full[MemoryPart::activations] == model.layers * Bytes(tokens * 2 * model.hidden));
  CHECK(full.total() < none.total());
}

TEST_CASE("a module that is computed again leaves out its own tensors, and modules add up", "[memory]") {
  using enum LayerModule;
  const Transformer model = preset("llama3-8b");
  const std::int64_t tokens = 8192;
  const auto dropped = [&](Recompute recompute) {
    return kept_bytes(kept_tensors(model, {}), {.tokens = tokens}) -
           kept_bytes(kept_tensors(model, {.recompute = recompute}), {.tokens = tokens});
  };
  // Widths of hidden state, queries, keys and values, and MLP, in elements of bf16.
  constexpr std::int64_t hidden = 4096, queries = 32 * 128, keys_and_values = 2 * 8 * 128, inner = 14'336;
  const auto elements = [&](std::int64_t width) { return Bytes(2 * tokens * width); };
  CHECK(dropped({norm}) == elements(2 * hidden));
  CHECK(dropped({qkv}) == elements(queries + keys_and_values));
  const Bytes log_sum_exp(4 * tokens * model.heads);
  CHECK(dropped({attention}) == log_sum_exp);
  CHECK(dropped({projection}) == elements(hidden));
  CHECK(dropped({attention, projection}) == log_sum_exp + elements(queries) + elements(hidden));
  CHECK(dropped({mlp}) == elements(3 * inner));  // gate, up, and what goes down
  CHECK(dropped({activation}) == elements(inner));
  CHECK(dropped({mlp, activation}) == dropped({mlp}));
  CHECK(dropped({experts}) == Bytes(0));
  CHECK(dropped({norm, attention, mlp}) == dropped({norm}) + dropped({attention}) + dropped({mlp}));
  // All modules together leave what the layer as a whole leaves.
  CHECK(dropped({norm, qkv, attention, projection, mlp}) == dropped(Recompute::full));
}

TEST_CASE("the layer at work has what it computes again: the MLP's half at the MLP, attention's at attention",
          "[memory]") {
  using enum LayerModule;
  const Transformer model = preset("llama3-8b");
  const std::int64_t tokens = 8192;
  const DeviceShape one_layer{.layers = {LayerRun{1}}, .embedding = false, .head = false};
  const auto peak = [&](Recompute recompute) {
    return DeviceMemory(model, one_layer, {.recompute = recompute, .fragmentation = 0}).peak({.tokens = tokens});
  };
  // A layer alone is fullest at its MLP's activation: what the MLP computes again is there, and saves nothing.
  const Bytes all = peak({}).total();
  CHECK(peak({mlp}).total() == all);
  CHECK(peak({activation}).total() == all);
  CHECK(peak(Recompute::full).total() == all);
  // What attention computes again is not there yet; unless the MLP's input needs it.
  const Bytes of_qkv(2 * tokens * (32 + 2 * 8) * 128);
  CHECK(peak({qkv}).total() == all - of_qkv);
  CHECK(peak({qkv, projection}).total() == all);
}

TEST_CASE("a parameter takes 18 bytes, of which each level of ZeRO shards another part", "[memory]") {
  // Megatron-Core, dist_optimizer: 18 bytes with bf16 parameters and fp32 gradients, 6 + 12 / d when the optimizer is
  // distributed. Levels 2 and 3 (Rajbhandari et al. 2020) keep two layers of what they shard.
  const Transformer model = preset("llama2-7b");
  const std::int64_t d = 8;
  const std::int64_t parameters = parameter_count(model);
  const std::int64_t two_layers = 2 * layer_parameter_count(model);
  REQUIRE(parameters % d == 0);
  const auto held = [&](std::int64_t zero) {
    const DeviceShape shape = whole_shape(model, {.pool = d});
    const MemoryParts parts = DeviceMemory(model, shape, {.zero = zero}).states();
    return (parts[MemoryPart::parameters] + parts[MemoryPart::gradients] + parts[MemoryPart::optimizer]).count();
  };
  CHECK(held(0) == 18 * parameters);
  CHECK(held(1) == 6 * parameters + 12 * parameters / d);
  CHECK(held(2) == 2 * parameters + 16 * parameters / d + 4 * two_layers);
  CHECK(held(3) == 18 * parameters / d + 6 * two_layers);
}

TEST_CASE("each level of ZeRO shards whole experts over the devices that hold the same ones", "[memory]") {
  const Transformer model = preset("mixtral-8x7b");
  const std::int64_t d = 32;
  const std::int64_t ep = 8;
  const DeviceShape shape = whole_shape(model, {.pool = d});
  const std::int64_t around = parameters_around_layers(model, true, true);
  const DeviceParameters all = device_parameters(model, shape.layers, around, 1, ep);
  const DeviceParameters two = device_parameters(model, {{2, 0}}, 0, 1, ep);
  REQUIRE(all.experts % (d / ep) == 0);
  const std::int64_t shard = divided(all.common, d) + all.experts / (d / ep);
  const auto held = [&](std::int64_t zero) {
    const Recipe recipe{.zero = zero, .gradient_bytes = 2, .accumulation_fusion = zero < 2};
    const MemoryParts parts = DeviceMemory(model, shape, recipe, {.ep = ep}).states();
    CHECK(parts[MemoryPart::optimizer] == Bytes(12 * (zero == 0 ? all.all() : shard)));
    return (parts[MemoryPart::parameters] + parts[MemoryPart::gradients]).count();
  };
  CHECK(held(0) == 4 * all.all());
  CHECK(held(1) == 4 * all.all());
  CHECK(held(2) == 2 * all.all() + 2 * (shard + two.all()));
  CHECK(held(3) == 4 * (shard + two.all()));
}

TEST_CASE("under autocast a parameter takes 16 bytes and is gathered in 4, its gradient in as many", "[memory]") {
  // The fp32 shard is what Adam updates: beside it a gradient in fp32, momentum and variance. FSDP casts the sum over
  // ranks to the type of the parameter, whatever they were summed in.
  const Transformer model = preset("llama2-7b");
  const std::int64_t d = 8;
  REQUIRE(parameter_count(model) % d == 0);
  const std::int64_t two_layers = 2 * layer_parameter_count(model);
  for (const std::int64_t gradient_bytes : {2, 4}) {
    const Recipe recipe{.zero = 3, .gradient_bytes = gradient_bytes, .parameters = NumberType::fp32};
    const MemoryParts states = DeviceMemory(model, whole_shape(model, {.pool = d}), recipe).states();
    CHECK(states[MemoryPart::parameters] == Bytes(4 * parameter_count(model) / d + 4 * two_layers));
    CHECK(states[MemoryPart::gradients] == states[MemoryPart::parameters]);
    CHECK(states[MemoryPart::optimizer] == Bytes(8 * parameter_count(model) / d));
    CHECK(states[MemoryPart::workspace] == Bytes(4 * layer_parameter_count(model)));
  }
}

TEST_CASE("under autocast a product keeps the cast of its weight, and a norm that is done again the fp32 stream",
          "[memory]") {
  using enum LayerModule;
  const Transformer model = preset("llama3-8b");
  constexpr std::int64_t hidden = 4096, queries = 32 * 128, keys_and_values = 2 * 8 * 128, inner = 14'336;
  const Bytes of_qkv(2 * hidden * (queries + keys_and_values));
  const Bytes of_projection(2 * queries * hidden);
  const Bytes of_mlp(2 * 3 * hidden * inner);
  const Bytes of_layer = of_qkv + of_projection + of_mlp;
  for (const std::int64_t tp : {1, 2}) {
    for (const std::int64_t tokens : {1024, 8192}) {
      const auto more = [&](Recompute recompute) {
        return kept_bytes(kept_tensors(model, {.recompute = recompute, .parameters = NumberType::fp32}),
                          {.tokens = tokens, .tp = tp}) -
               kept_bytes(kept_tensors(model, {.recompute = recompute}), {.tokens = tokens, .tp = tp});
      };
      const Bytes stream((4 - 2) * tokens * hidden / tp);  // in place of a cast to bf16
      CHECK(more({}) == of_layer / tp);
      CHECK(more({qkv}) == (of_layer - of_qkv) / tp);
      CHECK(more({projection}) == (of_layer - of_projection) / tp);
      CHECK(more({mlp}) == (of_layer - of_mlp) / tp);
      CHECK(more({attention, activation}) == of_layer / tp);
      CHECK(more({norm}) == of_layer / tp + 2 * stream);
      CHECK(more({norm, projection}) == (of_layer - of_projection) / tp + stream);
      CHECK(more(Recompute::full) == stream);
    }
  }
}

/// Two layers of 64 columns below a vocabulary that is larger than all else.
Transformer wide_vocabulary() {
  Transformer model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.kv_heads = 4;
  model.head_dim = 16;
  model.ffn_hidden = 256;
  model.vocabulary = 10'000;
  return model;
}

TEST_CASE("the peak is the head's backward where the vocabulary is large, the MLP's where there is no head",
          "[memory]") {
  const Transformer model = wide_vocabulary();
  const std::int64_t n = 1000;
  const Recipe recipe{.fragmentation = 0, .reserve = Bytes{}};
  const DeviceMemory whole(model, {.layers = {LayerRun{2}}}, recipe);
  // Logits and their weight's gradient in bf16, the last norm's input and output; beside them the input's gradient.
  const MemoryParts head = whole.peak({.tokens = n});
  CHECK(head[MemoryPart::head] == Bytes(2 * 10'000 * n + 2 * 10'000 * 64 + 2 * 2 * 64 * n));
  CHECK(head.total() ==
        whole.states().total() + whole.kept({.tokens = n}) + head[MemoryPart::head] + Bytes(2 * 64 * n));
  // fp32 logits come on top where the loss is not fused.
  const DeviceMemory unfused(model, {.layers = {LayerRun{2}}},
                             {.loss = Loss::fp32, .fragmentation = 0, .reserve = Bytes{}});
  CHECK(unfused.peak({.tokens = n}).total() == head.total() + Bytes(4 * 10'000 * n));
  // Without a head: the residual's gradient, three gradients of the MLP's inner width, less the tensor that is gone.
  const DeviceMemory middle(model, {.pp = 3, .layers = {LayerRun{2}}, .embedding = false, .head = false}, recipe);
  CHECK(middle.peak({.tokens = n}).total() ==
        middle.states().total() + middle.kept({.tokens = n}) + Bytes(2 * 64 * n) + Bytes(2 * 256 * n) * (3 - 1));
}

TEST_CASE("in attention's backward a group has two buffers of a ring, all keys it gathers, or what it trades",
          "[memory]") {
  Transformer model = wide_vocabulary();
  model.ffn_hidden = 16;
  const std::int64_t n = 1000;
  const std::int64_t kv = 2 * (4 * 16) * 2 * n;  // of a rank, and of its gradients
  const auto buffers = [&](KeyExchange way, std::int64_t ranks, LayerKernels layers = LayerKernels::fused) {
    const std::int64_t gradient = layers == LayerKernels::fused ? 2 : 4;
    const Recipe recipe{.layers = layers,
                        .dkv_bytes_per_element = gradient,
                        .key_exchange = way,
                        .fragmentation = 0,
                        .reserve = Bytes{}};
    const DeviceMemory middle(model, {.pp = 3, .layers = {LayerRun{2}}, .embedding = false, .head = false}, recipe);
    return middle.peak({.tokens = n, .ranks = ranks})[MemoryPart::communication];
  };
  for (const KeyExchange way : all_key_exchanges()) CHECK(buffers(way, 1) == Bytes{});
  CHECK(buffers(KeyExchange::ring, 8) == Bytes(2 * (kv + kv)));
  CHECK(buffers(KeyExchange::all_gather, 8) == Bytes(8 * (kv + kv)));
  // PyTorch's own gradients are fp32: three buffers of those of keys and values, two of those of queries.
  CHECK(buffers(KeyExchange::all_gather, 8, LayerKernels::eager) == Bytes(8 * kv + 2 * (3 * kv + 2 * kv / 2)));
  CHECK(buffers(KeyExchange::all_to_all, 4) == Bytes(kv + kv));  // queries and outputs are as wide as keys and values
  CHECK(buffers(KeyExchange::all_to_all, 8) == Bytes(kv + kv + 2 * (kv + kv)));
  // Where keys stay: queries, gradients of outputs and of queries, each half as wide as keys and values, and two fp32
  // numbers of each of four heads.
  CHECK(buffers(KeyExchange::query_ring, 8) == Bytes(2 * (3 * kv / 2 + 2 * 4 * 4 * n)));
  // Layers of another stage have two heads of keys: all layers share as these can.
  Layer other = model;
  other.kv_heads = 2;
  model.others = {other};
  CHECK(buffers(KeyExchange::all_to_all, 4) == Bytes(kv + kv + 2 * (kv + kv)));
}

TEST_CASE("moments take the bytes of their type, the master weight beside them four", "[memory]") {
  const Transformer model = preset("llama3-8b");
  const auto states = [&](const Recipe& recipe) {
    return DeviceMemory(model, whole_shape(model, {}), recipe).states()[MemoryPart::optimizer].count();
  };
  const std::int64_t parameters = parameter_count(model);
  CHECK(states({}) == (4 + 2 * 4) * parameters);
  CHECK(states({.moments = NumberType::bf16}) == (4 + 2 * 2) * parameters);
  CHECK(states({.moments = NumberType::fp8}) == (4 + 2 * 1) * parameters);
  CHECK(states({.zero = 3, .parameters = NumberType::fp32, .moments = NumberType::bf16}) == 2 * 2 * parameters);
}

TEST_CASE("what activations read takes a byte an element if it is kept in fp8", "[memory]") {
  const std::int64_t tokens = 1024;
  const auto saved = [&](const Transformer& model, const ExpertUse& use) {
    const auto kept = [&](bool fp8) {
      return kept_bytes(kept_tensors(model, {.fp8_activation_input = fp8}, use), {.tokens = tokens});
    };
    return kept(false) - kept(true);
  };
  const Transformer dense = preset("llama3-8b");
  CHECK(saved(dense, {}) == Bytes(tokens * 2 * dense.ffn_hidden));  // gate and up
  const Transformer experts = preset("mixtral-8x7b");
  CHECK(saved(experts, {}) == Bytes(tokens * 2 * 2 * experts.moe->expert_hidden));  // of two experts a token
}

TEST_CASE("Muon keeps one number less of every parameter of a matrix", "[memory]") {
  const Transformer model = preset("llama3-8b");
  const auto states = [&](Optimizer optimizer, std::int64_t pool) {
    const DeviceMemory device(model, whole_shape(model, {.tp = 2, .pool = pool}), {.optimizer = optimizer});
    return device.states()[MemoryPart::optimizer].count();
  };
  const std::int64_t vectors = 2 * model.layers * model.hidden;
  const std::int64_t in_matrices =
      (parameter_count(model) - vectors - embedding_parameter_count(model) - model.hidden) / 2;
  CHECK(states(Optimizer::adam, 1) == 3 * 4 * parameter_count(model) / 2);
  CHECK(states(Optimizer::lamb, 1) == states(Optimizer::adam, 1));
  CHECK(states(Optimizer::adam, 1) - states(Optimizer::muon, 1) == 4 * in_matrices);
  const auto saved = [&](std::int64_t pool) {
    return static_cast<double>(states(Optimizer::muon, pool)) / static_cast<double>(states(Optimizer::adam, pool));
  };
  CHECK(saved(64) == Approx(saved(1)));
}

TEST_CASE("under autocast a backward has the cast of the head's weight, and the stream's gradient in fp32",
          "[memory]") {
  Transformer model = wide_vocabulary();
  const std::int64_t n = 1000;
  const Recipe recipe{.zero = 3, .parameters = NumberType::fp32, .fragmentation = 0, .reserve = Bytes{}};
  const DeviceMemory whole(model, {.layers = {LayerRun{2}}}, recipe);
  const MemoryParts head = whole.peak({.tokens = n});
  CHECK(head[MemoryPart::head] == Bytes(2 * 10'000 * n + 2 * (2 * 10'000 * 64) + 2 * 2 * 64 * n));
  CHECK(head.total() ==
        whole.states().total() + whole.kept({.tokens = n}) + head[MemoryPart::head] + Bytes(2 * 64 * n));
  const auto middle = [&](const Recipe& those) {
    const DeviceMemory device(model, {.pp = 3, .layers = {LayerRun{2}}, .embedding = false, .head = false}, those);
    return device.peak({.tokens = n}).total() - device.states().total() - device.kept({.tokens = n});
  };
  // At the activation of a gated MLP: three gradients of the inner width, less the tensor that is gone.
  CHECK(middle(recipe) == Bytes(4 * 64 * n) + Bytes(2 * 256 * n) * (3 - 1));
  // At the last product of one that has no gate, the gradient of its input and, cast, that of its output.
  model.gated_mlp = false;
  CHECK(middle(recipe) == Bytes(4 * 64 * n) + Bytes(2 * 256 * n) + Bytes(2 * 64 * n));
  // A layer that is done again as a whole has there what one that is not keeps.
  Recipe again = recipe;
  again.recompute = Recompute::full;
  const DeviceMemory one(model, {.pp = 3, .layers = {LayerRun{1}}, .embedding = false, .head = false}, recipe);
  CHECK(middle(again) == middle(recipe) + one.kept({.tokens = n}));
}

TEST_CASE("what is outside of the allocator: a context, and a communicator for each group of more than one",
          "[memory]") {
  const std::int64_t mebi = 1024 * 1024;
  CHECK(default_reserve(1, 1, 1) == Bytes(426 * mebi));
  CHECK(default_reserve(2, 1, 1) == Bytes((426 + 688) * mebi));
  CHECK(default_reserve(2, 4, 512) == Bytes((426 + 3 * 688) * mebi));
}

TEST_CASE("more tokens, more micro-batches in flight or less offload never take less memory", "[memory]") {
  const Transformer model = preset("llama-7b");
  const DeviceMemory device(model, whole_shape(model, {.tp = 2, .pool = 16}), {});
  Bytes before{};
  for (std::int64_t tokens = 1; tokens < 200'000; tokens += 7'919) {
    const Bytes now = device.peak({.tokens = tokens}).total();
    CHECK(now >= before);
    CHECK(device.peak({.tokens = tokens, .ranks = 8}).total() >= now);
    CHECK(device.beside(device.peak({.tokens = tokens}), 1_GiB).total() > now + 1_GiB);  // with their gaps
    CHECK(device.peak({.tokens = tokens, .resident = 0.5}).total() <= now);
    before = now;
  }
}

TEST_CASE("a device keeps what each of its layers keeps, and computes in the last one", "[memory]") {
  const Transformer model = preset("qwen3-next-80b-a3b");  // every fourth layer has attention, the last one too
  const std::int64_t n = 1000;
  const DeviceShape shape = whole_shape(model, {});
  const auto kept = [&](const LayerRun& run) {
    return kept_bytes(kept_tensors(of_kind(model, run.kind), {}), {.tokens = n}) * run.count;
  };
  REQUIRE(shape.layers.size() == 2);
  CHECK(DeviceMemory(model, shape, {}).kept({.tokens = n}) == kept(shape.layers[0]) + kept(shape.layers[1]));
  CHECK(of_kind(model, shape.layers.back().kind).heads == 16);
}

TEST_CASE("latent attention keeps its latents on every device, and keys and values of its own heads", "[memory]") {
  Transformer model = preset("deepseek-v3");
  const std::int64_t with = kept_bytes(kept_tensors(model, {}), {.tokens = 1, .tp = 8}).count();
  const LatentAttention latent = *model.latent;
  model.latent.reset();
  // Inputs and outputs of two norms, and the rotated columns of the key.
  CHECK(with - kept_bytes(kept_tensors(model, {}), {.tokens = 1, .tp = 8}).count() ==
        2 * (2 * latent.query_rank + 2 * latent.kv_rank + latent.rotated));
}

}  // namespace
}  // namespace hdpsim
