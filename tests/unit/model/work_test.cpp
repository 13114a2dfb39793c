#include "sim/model/work.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/parameters.h"

#include <numeric>
#include <string>

#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

double flops(const LinearPart& part) {
  return std::accumulate(part.gemms.begin(), part.gemms.end(), 0.0, [](double sum, const Gemm& gemm) {
    return sum + 2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  });
}

double all_linear_flops(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  double sum = 0;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const double layer =
        flops(before_attention(model, tokens, tp, direction)) + flops(after_attention(model, tokens, tp, direction));
    sum += static_cast<double>(model.layers) * layer + flops(output_head(model, tokens, tp, direction)) +
           flops(embedding(model, tokens, tp, direction));
  }
  return sum;
}

TEST_CASE("parameter counts are those of the published checkpoints", "[model]") {
  // Exact numbers of parameters of the published weights.
  CHECK(parameter_count(preset("llama2-7b")) == 6'738'415'616);
  CHECK(parameter_count(preset("llama2-13b")) == 13'015'864'320);
  CHECK(parameter_count(preset("llama2-70b")) == 68'976'648'192);
  CHECK(parameter_count(preset("llama3-8b")) == 8'030'261'248);
  CHECK(parameter_count(preset("llama3-70b")) == 70'553'706'496);
  CHECK(parameter_count(preset("mistral-7b")) == 7'241'732'096);
  CHECK(parameter_count(preset("mixtral-8x7b")) == 46'702'792'704);
  CHECK(parameter_count(preset("mixtral-8x22b")) == 140'620'634'112);
}

TEST_CASE("GPT sizes follow the formula of Narayanan et al. and the table's billions", "[model]") {
  struct Row {
    const char* name;
    double billions;
  };
  for (const Row& row : {Row{"gpt-1.7b", 1.7},
                         {"gpt-3.6b", 3.6},
                         {"gpt-7.5b", 7.5},
                         {"gpt-18b", 18.4},
                         {"gpt-39b", 39.1},
                         {"gpt-76b", 76.1},
                         {"gpt-145b", 145.6},
                         {"gpt-310b", 310.1},
                         {"gpt-530b", 529.6},
                         {"gpt-1t", 1008.0},
                         {"gpt3-175b", 174.6}}) {
    INFO(row.name);
    const Transformer model = preset(row.name);
    // P = 12 l h^2 (1 + 13 / 12h + (V + s) / 12lh), SC21 equation 2; the final norm's 2 h are ours.
    const std::int64_t h = model.hidden;
    const std::int64_t formula =
        model.layers * (12 * h * h + 13 * h) + (model.vocabulary + model.learned_positions) * h;
    CHECK(parameter_count(model) == formula + 2 * h);
    CHECK(static_cast<double>(parameter_count(model)) * 1e-9 == Approx(row.billions).margin(0.06));
  }
}

TEST_CASE("MPT's seven billion are 6.66 with biases and learned positions", "[model]") {
  // 12 l h^2 + 13 l h + (V + s) h + 2 h with 32 layers of 4,096, 50,368 words and 2,048 positions.
  const std::int64_t h = 4096;
  CHECK(parameter_count(preset("mpt-7b")) == 32 * (12 * h * h + 13 * h) + (50'368 + 2'048) * h + 2 * h);
}

TEST_CASE("a model is its layers, its embeddings and one last norm", "[model]") {
  const Transformer model = preset("llama-7b");
  CHECK(parameter_count(model) ==
        model.layers * layer_parameter_count(model) + embedding_parameter_count(model) + model.hidden);
  CHECK(embedding_parameter_count(model) == std::int64_t{2} * 32'000 * 4'096);
}

TEST_CASE("the area under a causal mask counts each token with all before it and itself", "[model]") {
  CHECK(causal_area(0) == 0);
  CHECK(causal_area(1) == 1);
  CHECK(causal_area(4) == 1 + 2 + 3 + 4);
  CHECK(causal_area(2'097'152) == 2'199'024'304'128);
}

TEST_CASE("attention takes four FLOPs a pair and channel, backward five products for two", "[model]") {
  const Transformer model = preset("llama-7b");
  const double area = static_cast<double>(causal_area(8192));
  CHECK(attention_flops(model, area, Direction::forward).count() == 4 * 32 * 128 * area);
  CHECK(attention_flops(model, area, Direction::backward).count() == 10 * 32 * 128 * area);
}

TEST_CASE("linear work is six FLOPs a weight and token", "[model]") {
  for (const char* name : {"llama-7b", "llama2-13b", "llama-30b", "gpt-3.6b"}) {
    INFO(name);
    Transformer model = preset(name);
    model.biases = false;
    // Weights of the norms multiply nothing; a lookup is no product, but a tied table is the output head too.
    const std::int64_t norms = (2 * model.layers + 1) * model.hidden;
    const std::int64_t lookups = embedding_parameter_count(model) - model.vocabulary * model.hidden;
    const auto weights = static_cast<double>(parameter_count(model) - norms - lookups);
    CHECK(training_linear_flops(model, 1000).count() == Approx(6 * weights * 1000));
    CHECK(all_linear_flops(model, 1000, 1) == Approx(6 * weights * 1000));
  }
}

TEST_CASE("tensor parallelism divides every product", "[model]") {
  const Transformer model = preset("llama-7b");  // 32 heads, 8 key-value heads, 11,008 inner: all divide by 8
  CHECK(all_linear_flops(model, 4096, 8) == Approx(all_linear_flops(model, 4096, 1) / 8));
}

TEST_CASE("products have the shapes of Megatron's column and row cuts", "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t t = 8192;
  // Q has 4,096 columns, K and V 1,024 each; tp 2 halves them.
  CHECK(before_attention(model, t, 2, Direction::forward).gemms == std::vector<Gemm>{{t, 3072, 4096}});
  CHECK(after_attention(model, t, 2, Direction::forward).gemms ==
        std::vector<Gemm>{{t, 4096, 2048}, {t, 11008, 4096}, {t, 4096, 5504}});
  CHECK(output_head(model, t, 2, Direction::forward).gemms == std::vector<Gemm>{{t, 16000, 4096}});
  // Backward: gradient of the input, then of the weight, which is added to a sum in fp32.
  const auto summed = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return Gemm{.m = m, .n = n, .k = k, .sum_bytes = 4};
  };
  CHECK(before_attention(model, t, 2, Direction::backward).gemms ==
        std::vector<Gemm>{{t, 4096, 3072}, summed(4096, 3072, t)});
  CHECK(after_attention(model, t, 2, Direction::backward).gemms == std::vector<Gemm>{{t, 5504, 4096},
                                                                                     summed(5504, 4096, t),
                                                                                     {t, 4096, 11008},
                                                                                     summed(4096, 11008, t),
                                                                                     {t, 2048, 4096},
                                                                                     summed(2048, 4096, t)});
}

TEST_CASE("products add gradients to sums where no kernel of its own does and no micro-batch reduces its own",
          "[model]") {
  const Transformer model = preset("llama-7b");
  const auto sum_bytes = [&](const Recipe& recipe) {
    const LinearPart part = dense_work(model, 1024, 1, {DensePart::qkv}, Direction::backward, recipe);
    CHECK(part.gemms.at(0).sum_bytes == 0);
    return part.gemms.at(1).sum_bytes;
  };
  CHECK(sum_bytes({}) == 4);
  CHECK(sum_bytes({.gradient_bytes = 2}) == 2);
  CHECK(sum_bytes({.accumulation_fusion = false}) == 0);
  CHECK(sum_bytes({.zero = 2}) == 0);
}

TEST_CASE("an MLP without a gate has one product in and one out", "[model]") {
  const Transformer model = preset("gpt-3.6b");  // h 3,072, inner 12,288
  CHECK(after_attention(model, 2048, 1, Direction::forward).gemms ==
        std::vector<Gemm>{{2048, 3072, 3072}, {2048, 12288, 3072}, {2048, 3072, 12288}});
}

TEST_CASE("more tensor-parallel devices than key-value heads replicate them", "[model]") {
  const Transformer model = preset("llama-7b");
  CHECK(kv_bytes(model, 1000, 8) == kv_bytes(model, 1000, 16));
  CHECK(kv_bytes(model, 1000, 1) == Bytes(std::int64_t{1000} * 2 * 8 * 128 * 2));
}

TEST_CASE("the ring message of the case study is 33.5 MB for 8K tokens", "[model]") {
  CHECK(kv_bytes(preset("llama-7b"), 8192, 1) == Bytes(33'554'432));
  CHECK(kv_bytes(preset("llama-7b"), 8192, 2) == Bytes(16'777'216));
  CHECK(hidden_bytes(preset("llama-7b"), 8192) == Bytes(std::int64_t{8192} * 4096 * 2));
}

TEST_CASE("memory-bound kernels move each tensor as often as they touch it", "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t t = 1024;
  const std::int64_t h = 4096;
  const std::int64_t f = 11008;
  const std::int64_t rotated = 4096 + 1024;  // Q and K
  const std::int64_t words = 32'000;
  CHECK(before_attention(model, t, 1, Direction::forward).traffic() == Bytes(2 * t * (2 * h + 2 * rotated)));
  CHECK(before_attention(model, t, 1, Direction::backward).traffic() == Bytes(2 * t * (6 * h + 2 * rotated)));
  CHECK(after_attention(model, t, 1, Direction::forward).traffic() == Bytes(2 * t * (8 * h + 3 * f)));
  CHECK(after_attention(model, t, 1, Direction::backward).traffic() == Bytes(2 * t * (6 * h + 5 * f)));
  CHECK(embedding(model, t, 1, Direction::forward).traffic() == Bytes(2 * t * 2 * h));
  CHECK(output_head(model, t, 1, Direction::forward).traffic() == Bytes(2 * t * (2 * h + words)));
  CHECK(output_head(model, t, 1, Direction::backward).traffic() == Bytes(2 * t * (3 * h + 2 * words)));
}

TEST_CASE("elements of four bytes double what kernels move and what is sent", "[model]") {
  const Transformer half = preset("llama-7b");
  Transformer full = half;
  full.element_bytes = 4;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    CHECK(after_attention(full, 1024, 2, direction).traffic() ==
          after_attention(half, 1024, 2, direction).traffic() * 2);
  }
  CHECK(kv_bytes(full, 1024, 2) == kv_bytes(half, 1024, 2) * 2);
  CHECK(hidden_bytes(full, 1024) == hidden_bytes(half, 1024) * 2);
  // Of what is kept the log-sum-exp is fp32 in any case: one a head.
  const Bytes statistics(1024 * full.heads * 4);
  CHECK(activation_bytes(full, 1024, 1) - statistics == (activation_bytes(half, 1024, 1) - statistics) * 2);
}

TEST_CASE("kernels of one kind are priced together", "[model]") {
  // Its norm, residual and MLP are four kernels of three kinds, beside the residual that closes the layer.
  const LinearPart part = after_attention(preset("llama-7b"), 64, 1, Direction::forward);
  CHECK(part.memory_bound.size() == 3);
  CHECK(part.launches() == 3 + 4);
}

TEST_CASE("the host issues one graph in place of the kernels of a module that it captures", "[model]") {
  const Transformer model = preset("llama-7b");
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    Recipe recipe;
    const LinearPart eager = after_attention(model, 64, 1, direction, recipe);
    CHECK(eager.host_calls().kernels == eager.launches());
    recipe.graphs.add(GraphModule::attention);
    const std::int64_t without_attention = after_attention(model, 64, 1, direction, recipe).host_calls().kernels;
    CHECK(without_attention < eager.host_calls().kernels);
    CHECK(before_attention(model, 64, 1, direction, recipe).host_calls().kernels == 1);
    recipe.graphs.add(GraphModule::mlp);
    const LinearPart captured = after_attention(model, 64, 1, direction, recipe);
    CHECK(captured.host_calls().kernels == 1);
    CHECK(captured.launches() == eager.launches());
  }
}

TEST_CASE("products in fp8 cost the host more, but in graphs", "[model]") {
  const Transformer model = preset("llama-7b");
  Recipe recipe{.products = ProductFormat::fp8};
  // The products of attention's output and, gate and up in one, two of the MLP; backward two for each.
  CHECK(after_attention(model, 64, 1, Direction::forward, recipe).host_calls().narrow == 3);
  CHECK(after_attention(model, 64, 1, Direction::backward, recipe).host_calls().narrow == 6);
  CHECK(after_attention(model, 64, 1, Direction::forward).host_calls().narrow == 0);
  recipe.graphs.add(GraphModule::mlp);
  CHECK(after_attention(model, 64, 1, Direction::forward, recipe).host_calls().narrow == 1);
}

TEST_CASE("without sequence parallelism every device has the norms and residuals of all tokens", "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t t = 1024;
  const std::int64_t h = 4096;
  const Recipe whole{.sequence_parallel = false};
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const LinearPart cut = after_attention(model, t, 8, direction);
    const LinearPart all = after_attention(model, t, 8, direction, whole);
    CHECK(all.gemms == cut.gemms);
    // Residual, norm and residual forward touch 8 h a token, norm and residual backward 6 h; of each 7/8 more.
    const std::int64_t touched = direction == Direction::forward ? 8 : 6;
    CHECK(all.traffic() - cut.traffic() == Bytes(2 * touched * h * t * 7 / 8));
  }
}

TEST_CASE("products in fp8 cast what no norm has written for them, and gradients; the head stays in bf16", "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t t = 1024;
  const std::int64_t h = 4096;
  const std::int64_t f = 11008;
  const std::int64_t qkv = 4096 + 2 * 1024;
  const Recipe fp8{.products = ProductFormat::fp8};
  const auto casts = [&](const auto& part, Direction direction) {
    return part(model, t, 1, direction, fp8).traffic() - part(model, t, 1, direction, {}).traffic();
  };
  // An element is read in two bytes and written in one, twice.
  CHECK(casts(before_attention, Direction::forward) == Bytes{});
  CHECK(casts(after_attention, Direction::forward) == Bytes(4 * t * (h + f)));  // attention's output, activation's
  CHECK(casts(before_attention, Direction::backward) == Bytes(4 * t * qkv));
  CHECK(casts(after_attention, Direction::backward) == Bytes(4 * t * (h + 2 * f + h)));
  CHECK(casts(output_head, Direction::forward) == Bytes{});
  CHECK(before_attention(model, t, 1, Direction::forward, fp8).gemms.front().format == ProductFormat::fp8);
  CHECK_FALSE(is_narrow(output_head(model, t, 1, Direction::forward, fp8).gemms.front().format));
}

TEST_CASE(
    "a scale from the tensor itself takes a pass over it, unless a norm made it, and scales of blocks are written",
    "[model]") {
  const std::int64_t numbers = 4096;
  const std::int64_t written = 2 * numbers;  // by rows and by columns
  const auto bytes = [&](ProductFormat format, CastOf what) { return cast_bytes(format, numbers, 2, what); };
  CHECK(bytes(ProductFormat::elements, CastOf::other) == 0);
  CHECK(bytes(ProductFormat::fp8, CastOf::other) == 2 * numbers + written);
  CHECK(bytes(ProductFormat::fp8, CastOf::norm) == 0);
  CHECK(bytes(ProductFormat::fp8_current, CastOf::other) == 2 * 2 * numbers + written);
  CHECK(bytes(ProductFormat::fp8_current, CastOf::norm) == 2 * numbers + written);
  for (const ProductFormat format : {ProductFormat::fp8_blocks, ProductFormat::mxfp8}) {
    CHECK(bytes(format, CastOf::other) == 2 * numbers + written + 2 * numbers / 32);
    CHECK(bytes(format, CastOf::norm) == bytes(format, CastOf::other));
  }
  // In 4 bits: half a byte and a sixteenth, by rows and by columns, behind two passes over the elements.
  CHECK(bytes(ProductFormat::nvfp4, CastOf::other) == 2 * 2 * numbers + numbers + 2 * numbers / 16);
  CHECK(bytes(ProductFormat::nvfp4, CastOf::norm) == bytes(ProductFormat::nvfp4, CastOf::other));
}

TEST_CASE("an activation's input that is kept in fp8 is cast there and back", "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t t = 1024;
  const Recipe fp8{.fp8_activation_input = true};
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    CHECK(after_attention(model, t, 1, direction, fp8).traffic() -
              after_attention(model, t, 1, direction, {}).traffic() ==
          Bytes(t * 2 * model.ffn_hidden * (2 + 1)));
  }
}

TEST_CASE("dropout writes masks in kernels that are there forward, and takes kernels of its own backward", "[model]") {
  const Transformer model = preset("gpt-22b");
  const std::int64_t t = 2048;
  const std::int64_t elements = t / 8 * model.hidden;  // norms and residuals are divided over tp
  const Recipe dropout{.dropout = true};
  const auto more = [&](const auto& part, Direction direction) {
    return part(model, t, 8, direction, dropout).traffic() - part(model, t, 8, direction, {}).traffic();
  };
  CHECK(more(before_attention, Direction::forward) == Bytes{});
  CHECK(more(after_attention, Direction::forward) == Bytes(2 * elements));  // two residuals, a byte of mask each
  // Two gradients of two bytes an element are read and written, and their masks read.
  CHECK(more(after_attention, Direction::backward) == Bytes(2 * 5 * elements));
  CHECK(more(embedding, Direction::forward) == Bytes(5 * elements));
  CHECK(more(embedding, Direction::backward) == Bytes(5 * elements));
}

TEST_CASE("the gradients of biases read the gradients of all outputs once more", "[model]") {
  const Transformer with = preset("gpt-22b");
  Transformer without = with;
  without.biases = false;
  const std::int64_t t = 2048;
  const std::int64_t h = with.hidden;
  const auto more = [&](Direction direction, const Recipe& recipe) {
    const auto traffic = [&](const Transformer& model) {
      return before_attention(model, t, 1, direction, recipe).traffic() +
             after_attention(model, t, 1, direction, recipe).traffic() +
             output_head(model, t, 1, direction, recipe).traffic();
    };
    return traffic(with) - traffic(without);
  };
  CHECK(more(Direction::forward, {}) == Bytes{});
  CHECK(more(Direction::backward, {}) == Bytes(2 * t * (3 * h + h + 4 * h + h)));  // the head has none
  CHECK(more(Direction::backward, {.products = ProductFormat::fp8}) == Bytes{});   // its casts add them up
}

TEST_CASE("under autocast weights are cast once forward, their gradients twice backward; the residual stream is fp32",
          "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t h = 4096;
  // Output projection, gate and up in one, down: four bytes in and two out, or the other way round.
  const std::int64_t weights = 6 * (h * h + 3 * h * 11008);
  // A residual twice: two bytes more in and out. A norm: a cast.
  const std::int64_t forward = h * (2 * (2 + 2) + (4 + 2));
  // A norm's gradient is cast, three fp32 instead of three bf16 are joined, both branches want theirs in bf16.
  const std::int64_t backward = h * ((2 + 4) + 3 * 2 + 2 * (4 + 2));
  for (const std::int64_t tokens : {128, 8192}) {
    const auto more = [&](Direction direction) {
      const LinearPart with = after_attention(model, tokens, 1, direction, {.zero = 2, .parameters = NumberType::fp32});
      const LinearPart without = after_attention(model, tokens, 1, direction, {.zero = 2});
      return std::pair(with.traffic() - without.traffic(), with.launches() - without.launches());
    };
    CHECK(more(Direction::forward) == std::pair(Bytes(weights + tokens * forward), std::int64_t{3 + 1}));
    CHECK(more(Direction::backward) == std::pair(Bytes(2 * weights + tokens * backward), std::int64_t{6 + 3}));
  }
}

TEST_CASE("gradients that products do not add up are read and added to their sums by kernels", "[model]") {
  const Transformer model = preset("gpt-22b");
  const std::int64_t h = model.hidden;
  const std::int64_t tp = 8;
  const std::int64_t weights = (h * h + 2 * h * model.ffn_hidden) / tp;  // output projection, up, down
  const std::int64_t table = model.vocabulary / tp * h;
  for (const std::int64_t sums : {2, 4}) {
    const auto more = [&](const auto& part, Direction direction) {
      const LinearPart with =
          part(model, 2048, tp, direction, Recipe{.gradient_bytes = sums, .accumulation_fusion = false});
      const LinearPart without = part(model, 2048, tp, direction, Recipe{});
      return std::pair(with.traffic() - without.traffic(), with.launches() - without.launches());
    };
    const std::int64_t added = 2 + 2 * sums;
    CHECK(more(after_attention, Direction::forward) == std::pair(Bytes{}, std::int64_t{0}));
    CHECK(more(after_attention, Direction::backward) == std::pair(Bytes(weights * added), std::int64_t{3}));
    CHECK(more(output_head, Direction::backward) == std::pair(Bytes(table * added), std::int64_t{1}));
  }
}

TEST_CASE("a buffer of gradients gets a dense gradient of the table: zeros, rows added to them, and their sum",
          "[model]") {
  const Transformer model = preset("gpt-22b");
  const std::int64_t tokens = 2048;
  const std::int64_t tp = 8;
  const std::int64_t rows = tokens / tp * model.hidden;
  const std::int64_t table = model.vocabulary / tp * model.hidden;
  const auto backward = [&](const Recipe& recipe) { return embedding(model, tokens, tp, Direction::backward, recipe); };
  // Without one, rows of two bytes are added to fp32 sums in place.
  CHECK(backward({}).traffic() == Bytes(rows * (2 + 4 + 4)));
  CHECK(backward({}).launches() == 1);
  for (const std::int64_t sums : {2, 4}) {
    const std::int64_t dense = rows * (2 + 2 + 2) + table * (2 + 2 + 2 * sums);
    for (const Recipe& recipe : {Recipe{.gradient_bytes = sums, .gradient_buffer = true},
                                 Recipe{.gradient_bytes = sums, .accumulation_fusion = false}}) {
      CHECK(backward(recipe).traffic() == Bytes(dense));
      CHECK(backward(recipe).launches() == 3);
    }
  }
  // Products that add up the gradients of other weights do so beside a buffer too.
  CHECK(output_head(model, tokens, tp, Direction::backward, {.gradient_buffer = true}).traffic() ==
        output_head(model, tokens, tp, Direction::backward).traffic());
}

TEST_CASE("FSDP copies each gradient into a flat one and divides it before it is reduced", "[model]") {
  const Transformer model = preset("llama-7b");
  const std::int64_t weights = 4096 * 4096 + 3 * 4096 * 11008;
  const auto more = [&](bool autocast) {
    const NumberType parameters = autocast ? NumberType::fp32 : NumberType::bf16;
    const Recipe views{.zero = 3, .parameters = parameters};
    const LinearPart with = after_attention(model, 2048, 1, Direction::backward, views);
    return with.traffic() -
           after_attention(model, 2048, 1, Direction::backward, {.zero = 2, .parameters = parameters}).traffic();
  };
  CHECK(more(false) == Bytes(weights * (2 + 2 + 2 + 2)));
  CHECK(more(true) == Bytes(weights * (4 + 4 + 2 + 2)));
  CHECK(after_attention(model, 2048, 1, Direction::forward, {.zero = 3}).traffic() ==
        after_attention(model, 2048, 1, Direction::forward).traffic());
}

TEST_CASE("a loss in fp32 passes over the logits kernel by kernel", "[model]") {
  const Transformer model = preset("gpt-22b");
  const std::int64_t logits = 2048 * model.vocabulary / 8;
  const auto bytes = [&](Direction direction, bool fp32_loss) {
    return output_head(model, 2048, 8, direction, {.loss = fp32_loss ? Loss::fp32 : Loss::fused}).traffic();
  };
  const auto more = [&](Direction direction) { return bytes(direction, true) - bytes(direction, false); };
  // Fused: read once, and turned into the gradient in place. In fp32: copied; maximum, difference, exponential, sum and
  // quotient; backward a multiplication in place and a cast.
  CHECK(more(Direction::forward) == Bytes(logits * ((2 + 4) + 4 + (4 + 4) + (4 + 4) + 4 + (4 + 4) - 2)));
  CHECK(more(Direction::backward) == Bytes(logits * ((4 + 4) + (4 + 2) - (2 + 2))));
}

TEST_CASE("GPT keeps 32 bytes a hidden element and token, Korthikanti's 34 without dropout masks", "[model]") {
  const Transformer model = preset("gpt-22b");
  const std::int64_t log_sum_exp = 4 * model.heads;
  CHECK(activation_bytes(model, 2048, 1) == Bytes(2048 * (32 * model.hidden + log_sum_exp)));
  CHECK(activation_bytes(model, 2048, 8) == Bytes(2048 * (32 * model.hidden + log_sum_exp) / 8));
}

TEST_CASE("the published offload experiment frees the memory that activations take", "[model]") {
  // ByteScale, offload of 64K tokens of LLaMA-7B: 59 GB without and 27 GB with full offload, read as tp 8. Two of 32
  // layers always stay on the device.
  const Bytes layer = activation_bytes(preset("llama-7b"), 65'536, 8);
  CHECK((30 * layer).gigabytes() == Approx(59 - 27).epsilon(0.1));
}

TEST_CASE("latent attention makes latents on every device and expands them for its own heads", "[model]") {
  const Transformer model = preset("deepseek-v3");  // 128 heads of 128 + 64 and 128, latents of 1,536 and 512 + 64
  const std::int64_t t = 4096;
  CHECK(before_attention(model, t, 8, Direction::forward).gemms ==
        std::vector<Gemm>{{t, 1536, 7168}, {t, 16 * 192, 1536}, {t, 512 + 64, 7168}, {t, 16 * (128 + 128), 512}});
  CHECK(dense_work(model, t, 8, {DensePart::attention_output}, Direction::forward).gemms ==
        std::vector<Gemm>{{t, 7168, 16 * 128}});
  CHECK(kv_bytes(model, t, 8) == Bytes(t * 16 * (192 + 128) * 2));  // expanded
}

TEST_CASE("linear work of every kind of layer is six FLOPs a weight that a token takes", "[model]") {
  for (const char* name : {"gemma-3-27b", "command-a", "falcon-7b", "glm-4-32b", "phi-4"}) {
    INFO(name);
    const Transformer model = preset(name);
    double forward = 0;
    for (const LayerRun& run : layer_runs(model)) {
      const Transformer kind = of_kind(model, run.kind);
      const LinearPart before = before_attention(kind, 1000, 1, Direction::forward);
      const LinearPart after = after_attention(kind, 1000, 1, Direction::forward);
      forward += static_cast<double>(run.count) * (flops(before) + flops(after));
    }
    forward += flops(output_head(model, 1000, 1, Direction::forward));
    CHECK(3 * forward == Approx(training_linear_flops(model, 1000).count()));
  }
}

TEST_CASE("parallel branches read one norm, and Gemma's outputs have norms of their own", "[model]") {
  const auto norms = [](const Transformer& model) {
    const std::vector<DensePart> layer = {DensePart::attention_norm, DensePart::attention_residual, DensePart::mlp_norm,
                                          DensePart::mlp_residual};
    std::int64_t kernels = 0;
    for (const MemoryBound& of : dense_work(model, 100, 1, layer, Direction::forward).memory_bound) {
      if (of.kind == MemoryKernel::rms_norm_forward) kernels += of.kernels;
    }
    return kernels;
  };
  CHECK(norms(preset("falcon-7b")) == 1);
  CHECK(norms(preset("llama3-8b")) == 2);
  CHECK(norms(preset("gemma-2-27b")) == 4);
}

}  // namespace
}  // namespace hdpsim
