#include "sim/model/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "sim/model/layer_operations.h"
#include "sim/model/memory.h"
#include "sim/model/parameters.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

// Hidden size 64; 4 experts of inner width 32, 2 of which a token takes.
Transformer small_mixture(std::int64_t experts = 4, std::int64_t per_token = 2) {
  Transformer model;
  model.name = "small";
  model.layers = 6;
  model.hidden = 64;
  model.heads = model.kv_heads = 1;
  model.head_dim = 64;
  model.ffn_hidden = 128;
  model.vocabulary = 1000;
  model.moe = MixtureOfExperts{.experts = experts, .experts_per_token = per_token, .expert_hidden = 32};
  return model;
}

Transformer with_dense_layers(Transformer model) {
  model.moe.reset();
  return model;
}

double expert_flops(const LinearPart& part) {
  double sum = 0;
  for (const Gemm& gemm : part.gemms) sum += flops_of(gemm).count();
  return sum;
}

std::vector<double> descending(std::vector<double> shares) {
  std::sort(shares.rbegin(), shares.rend());
  return shares;
}

TEST_CASE("parameters of published mixtures are counted to the last one", "[experts]") {
  // Attention with its norms of queries and keys, 128 experts and the router, two norms; two tables and the last norm.
  const std::int64_t h = 2048;
  const std::int64_t qwen3 = h * (4096 + 2 * 512) + 4096 * h + 2 * 128 + 128 * 3 * h * 768 + 128 * h + 2 * h;
  CHECK(parameter_count(preset("qwen3-30b-a3b")) == 48 * qwen3 + 2 * 151'936 * h + h);
  // Biases of queries, keys and values; shared experts with a gate.
  const std::int64_t qwen2 = 4 * h * h + 3 * h + 60 * 3 * h * 1408 + 60 * h + 3 * h * 5632 + h + 2 * h;
  CHECK(parameter_count(preset("qwen1.5-moe-a2.7b")) == 24 * qwen2 + 2 * 151'936 * h + h);
  // The first layer is dense.
  const std::int64_t sparse = 4 * h * h + 64 * 3 * h * 1408 + 64 * h + 2 * 3 * h * 1408 + 2 * h;
  const std::int64_t dense = 4 * h * h + 3 * h * 10'944 + 2 * h;
  CHECK(parameter_count(preset("deepseek-moe-16b")) == 27 * sparse + dense + 2 * 102'400 * h + h);
  // What their model cards say, in billions.
  const auto billions = [](const char* name) { return static_cast<double>(parameter_count(preset(name))) * 1e-9; };
  CHECK(billions("mixtral-8x7b") == Approx(46.7).margin(0.05));
  CHECK(billions("mixtral-8x22b") == Approx(140.6).margin(0.05));
  CHECK(billions("qwen3-30b-a3b") == Approx(30.5).margin(0.05));
  CHECK(billions("qwen1.5-moe-a2.7b") == Approx(14.3).margin(0.05));
  CHECK(billions("deepseek-moe-16b") == Approx(16.4).margin(0.05));
}

TEST_CASE("a token's work is that of the experts that it takes", "[experts]") {
  // Active parameters: without the embedding, of which a token reads a row. Mixtral 8x7B has 12.9 billion with it.
  const Transformer mixtral = preset("mixtral-8x7b");
  const double embedding = static_cast<double>(mixtral.vocabulary * mixtral.hidden);
  const double active = training_linear_flops(mixtral, 1).count() / 6 + embedding;
  CHECK(active * 1e-9 == Approx(12.9).margin(0.05));
  const Transformer model = small_mixture();
  Transformer dense = with_dense_layers(model);
  dense.ffn_hidden = 2 * 32;
  const double router = 6.0 * 6 * 64 * 4 * 10;  // FLOPs a weight and token, layers, hidden, experts, tokens
  CHECK(training_linear_flops(model, 10).count() == training_linear_flops(dense, 10).count() + router);
}

TEST_CASE("even routing computes what a dense MLP as wide as the experts of a token computes", "[experts]") {
  const Transformer model = small_mixture();
  Transformer dense = with_dense_layers(model);
  dense.ffn_hidden = 2 * 32;
  const std::int64_t tokens = 1024;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const double expected = expert_flops(dense_work(dense, tokens, 1, {DensePart::mlp}, direction));
    for (const std::int64_t ep : {1, 2, 4}) {
      for (const auto& factor : {std::optional<double>(), std::optional(1.0)}) {
        const ExpertLayout layout{.ep = ep, .capacity_factor = factor, .shares = {}};
        // All devices of the group together have those tokens.
        const ExpertRows rows = expert_rows(*model.moe, layout, {tokens / ep, tokens});
        CHECK(rows.slowest == rows.even);
        const LinearPart work =
            work_of(layer_operations(model, {}), {.copies = rows.even}, {DensePart::experts}, direction);
        CHECK(static_cast<double>(ep) * expert_flops(work) == expected);
      }
    }
  }
}

TEST_CASE("the popularity of experts falls as Zipf says, and no token takes an expert twice", "[experts]") {
  const MixtureOfExperts one{.experts = 4, .experts_per_token = 1};
  const auto plain = descending(zipf_shares(one, 1, 7));  // 1 + 1/2 + 1/3 + 1/4 = 25/12
  CHECK(plain[0] == Approx(12.0 / 25));
  CHECK(plain[1] == Approx(6.0 / 25));
  CHECK(plain[2] == Approx(4.0 / 25));
  CHECK(plain[3] == Approx(3.0 / 25));
  // Of two experts a token one is the first: it has half of all copies, and the rest share the other half.
  const MixtureOfExperts two{.experts = 4, .experts_per_token = 2};
  const auto capped = descending(zipf_shares(two, 2, 7));
  const double rest = 1.0 / 4 + 1.0 / 9 + 1.0 / 16;
  CHECK(capped[0] == Approx(0.5));
  CHECK(capped[1] == Approx(0.5 * (1.0 / 4) / rest));
  CHECK(capped[3] == Approx(0.5 * (1.0 / 16) / rest));
  for (const double share : zipf_shares(two, 0, 7)) CHECK(share == Approx(0.25));
  // The weights of the last ones are less than any number: what the first ones leave is nobody's, or everybody's.
  MixtureOfExperts many = two;
  many.experts = 4096;
  many.experts_per_token = 8;
  const auto steep = descending(zipf_shares(many, 100, 7));
  CHECK(std::accumulate(steep.begin(), steep.end(), 0.0) == Approx(1));
  CHECK(steep[7] == Approx(1.0 / 8));
  CHECK(steep[8] == Approx(std::pow(8.0 / 9, 100) / 8).epsilon(0.01));  // as the ninth beside the eighth, which has all
  CHECK(steep.back() >= 0);
  CHECK(zipf_shares(one, 1, 7) == zipf_shares(one, 1, 7));
  bool another_order = false;
  for (std::uint64_t seed = 8; seed < 16; ++seed) another_order |= zipf_shares(one, 1, seed) != zipf_shares(one, 1, 7);
  CHECK(another_order);
}

TEST_CASE("the fullest device has its experts' copies, and a capacity bounds each of them", "[experts]") {
  const MixtureOfExperts moe{.experts = 4, .experts_per_token = 1};
  ExpertLayout layout{.ep = 2, .capacity_factor = {}, .shares = {0.1, 0.2, 0.3, 0.4}};
  // 100 tokens on each of two devices, one copy each: 70 % of 200 copies are the second device's.
  const ExpertRows rows = expert_rows(moe, layout, {100, 200});
  CHECK(rows.slowest == std::vector<std::int64_t>{60, 80});
  CHECK(rows.even == std::vector<std::int64_t>{50, 50});
  CHECK(rows.received() == 140);
  CHECK(rows.sent == 100);
  CHECK(hottest_device(moe, layout) == Approx(1.4));
  const Transformer model = small_mixture();
  CHECK(expert_exchange_bytes(model, rows) == Bytes(140 * 64 * 2));
  // An expert takes 1.2 times 50 copies at most: 20, 40, 60 and 60 of 200 are left, 90 of 100 leave a device.
  layout.capacity_factor = 1.2;
  const ExpertRows capped = expert_rows(moe, layout, {100, 200});
  CHECK(capped.slowest == std::vector<std::int64_t>{60, 60});
  CHECK(capped.even == std::vector<std::int64_t>{45, 45});
  CHECK(capped.sent == 90);
}

TEST_CASE("devices that cut an expert each receive a part of its copies and bring all of them together", "[experts]") {
  const MixtureOfExperts moe{.experts = 4, .experts_per_token = 1};
  // Groups of 2 x 2 devices of 100 tokens: 400 copies, 100 an expert, of which a device has two.
  const ExpertRows rows = expert_rows(moe, {.ep = 2, .etp = 2}, {100, 400});
  CHECK(rows.slowest == std::vector<std::int64_t>{100, 100});
  CHECK(rows.sent == 100);
  CHECK(rows.received() == 100);
  const Transformer model = small_mixture();
  CHECK(expert_exchange_bytes(model, rows) == Bytes(100 * 64 * 2));
  CHECK(expert_gather_bytes(model, rows) == Bytes(200 * 64 * 2));
  CHECK(hottest_device(moe, {.ep = 2, .etp = 2, .shares = {0.1, 0.2, 0.3, 0.4}}) == Approx(1.4));
  CHECK(expert_ranks({4, 2}, 8) == 1);
  CHECK(expert_ranks({8, 2}, 4) == 4);
}

TEST_CASE("experts take all copies together that they keep, whatever the rounding of each", "[experts]") {
  const MixtureOfExperts moe{.experts = 8, .experts_per_token = 2};
  ExpertLayout layout{.ep = 1};
  layout.shares = {0.13, 0.12, 0.125, 0.125, 0.1251, 0.1249, 0.1255, 0.1245};
  for (const std::int64_t tokens : {1, 7, 100, 1001}) {
    const ExpertRows rows = expert_rows(moe, layout, {tokens, tokens});
    CHECK(rows.received() == 2 * tokens);
  }
}

TEST_CASE("copies that experts drop are no work of the model", "[experts]") {
  const Transformer model = small_mixture(8, 2);
  ExpertLayout layout{.ep = 8};
  CHECK(kept_copies(model, layout) == 1);
  layout.capacity_factor = 0.25;
  CHECK(kept_copies(model, layout) == Approx(0.25));
  layout.shares = {0.51, 0.07, 0.07, 0.07, 0.07, 0.07, 0.07, 0.07};
  layout.capacity_factor = 1;  // 0.125 each
  CHECK(kept_copies(model, layout) == Approx(0.125 + 7 * 0.07));
  const double all = training_linear_flops(model, 1000).count();
  const double none = training_linear_flops(model, 1000, 0).count();
  CHECK(training_linear_flops(model, 1000, 0.5).count() == Approx((all + none) / 2));
  CHECK(all - none == Approx(6.0 * 1000 * static_cast<double>(model.layers) * 2 *
                             static_cast<double>(expert_parameter_count(model))));
}

TEST_CASE("whole experts are shared by fewer devices than the rest of a model", "[experts]") {
  const Transformer model = small_mixture();
  const std::int64_t experts = 6 * 4 * 3 * 64 * 32;
  const std::int64_t routers = 6 * 4 * 64;  // whole on every device
  const std::int64_t rest = (parameter_count(model) - experts - routers) / 2 + routers;
  const Recipe recipe{.fragmentation = 0, .reserve = Bytes{}};
  // 8 ranks of 2 devices, groups of 4 devices: each has an expert a layer, as every fourth of 16 devices does.
  const DeviceMemory device(model, whole_shape(model, {.tp = 2, .pool = 8}), recipe, {.ep = 4});
  CHECK(device.states()[MemoryPart::parameters] == Bytes(2 * (rest + experts / 4)));
  CHECK(device.states()[MemoryPart::gradients] == Bytes(4 * (rest + experts / 4)));
  CHECK(device.states()[MemoryPart::optimizer] == Bytes(12 * (rest / 8 + experts / 4 / 4)));
  // Without groups experts are cut over the two devices, and all is shared by the eight ranks.
  const DeviceMemory cut(model, whole_shape(model, {.tp = 2, .pool = 8}), recipe, {.ep = 1});
  CHECK(cut.states()[MemoryPart::parameters] == Bytes(2 * (rest + experts / 2)));
}

TEST_CASE("a device keeps the copies that its experts got", "[experts]") {
  const Transformer model = small_mixture();
  const std::int64_t n = 100;
  const auto kept = [&](std::int64_t ep, double hottest, std::optional<std::int64_t> expert_tokens) {
    return kept_bytes(kept_tensors(model, {}, {.ep = ep, .hottest = hottest}),
                      {.tokens = n, .expert_tokens = expert_tokens})
        .count();
  };
  // A copy: its hidden state, twice an inner width in and one out, in bf16; two of a token.
  const std::int64_t copy = 2 * (64 + 3 * 32);
  Transformer dense = with_dense_layers(model);
  dense.ffn_hidden = 1;
  const std::int64_t mlp = n * 2 * 3;  // of inner width 1, twice in and one out in bf16
  const std::int64_t rest =
      kept_bytes(kept_tensors(dense, {}), {.tokens = n}).count() - mlp + n * 4 * 4;  // 4 probabilities
  CHECK(kept(1, 1, {}) == rest + n * 2 * copy);
  CHECK(kept(4, 1, {}) == rest + n * 2 * copy);
  CHECK(kept(4, 1.5, {}) == rest + n * 3 * copy);
  CHECK(kept(4, 1, 70) == rest + 70 * 2 * copy);
}

TEST_CASE("copies of tokens are as wide as the latent in which experts work, and a device keeps their sums",
          "[experts]") {
  Transformer model = small_mixture();
  const std::int64_t wide = kept_bytes(kept_tensors(model, {}), {.tokens = 100}).count();
  model.moe->latent = 16;
  // Two copies of a token are 64 - 16 elements of two bytes narrower; their sum is one of 16.
  CHECK(kept_bytes(kept_tensors(model, {}), {.tokens = 100}).count() == wide - 100 * 2 * (2 * (64 - 16) - 16));
  // A token's work: two copies through two products of 16 columns and one back, and the products to and from 16.
  const Transformer dense = with_dense_layers(model);
  const double mlp = 3 * 64 * 128;
  const double mixture = 2 * 3 * 16 * 32 + 2 * 64 * 16 + 64 * 4;
  CHECK(training_linear_flops(model, 10).count() - training_linear_flops(dense, 10).count() ==
        6.0 * 6 * 10 * (mixture - mlp));
}

TEST_CASE("a device that cuts its experts with another keeps both devices' copies, and half of their inner columns",
          "[experts]") {
  const Transformer model = small_mixture();
  const std::int64_t n = 100;
  const auto peak = [&](const ExpertUse& groups) {
    const DeviceShape shape{.tp = 2, .pool = 2, .layers = {LayerRun{1}}, .embedding = false, .head = false};
    return DeviceMemory(model, shape, {.fragmentation = 0}, groups).peak({.tokens = n});
  };
  const MemoryParts whole = peak({2, 1});
  const MemoryParts cut = peak({2, 1, 2});
  // Two copies of each of the device's n / 2 tokens, of 64 columns in bf16.
  const Bytes copies(n / 2 * 2 * 64 * 2);
  CHECK(cut[MemoryPart::activations] == whole[MemoryPart::activations] + copies);
  // Of the four devices, two groups hold whole experts twice; one group of all holds cut ones once.
  CHECK(cut[MemoryPart::parameters] + Bytes(4 / 2 / 2 * expert_parameter_count(model) * 2) ==
        whole[MemoryPart::parameters]);
}

TEST_CASE("experts that are computed again leave one layer's copies, and of the others the MLP's input", "[experts]") {
  const Transformer model = small_mixture();
  const std::int64_t n = 100;
  for (const ExpertUse& groups : {ExpertUse{1, 1}, ExpertUse{4, 1.5}}) {
    CAPTURE(groups.ep);
    const auto peak = [&](std::int64_t layers, Recompute recompute) {
      const DeviceShape shape{.layers = {LayerRun{layers}}, .embedding = false, .head = false};
      return DeviceMemory(model, shape, {.recompute = recompute, .fragmentation = 0}, groups).peak({.tokens = n});
    };
    // Inputs of two norms, of the QKV product and of the MLP, q, k, v and o in bf16, and a log-sum-exp.
    const std::int64_t outside = n * (8 * 2 * 64 + 4);
    // Four probabilities in fp32; of two copies the hidden state, and in bf16 twice an inner width in and one out.
    const auto copies = static_cast<std::int64_t>(groups.hottest * static_cast<double>(n * 2));
    const std::int64_t inside = n * 4 * 4 + copies * 2 * (64 + 3 * 32);
    const std::int64_t output = copies * 2 * 32;
    using enum LayerModule;
    CHECK(peak(6, {})[MemoryPart::activations] == Bytes(6 * (outside + inside)));
    CHECK(peak(6, {experts})[MemoryPart::activations] == Bytes(6 * outside));
    CHECK(peak(6, {activation})[MemoryPart::activations] == Bytes(6 * (outside + inside - output)));
    // The layer at work has all of it again.
    CHECK(peak(6, {}).total() - peak(6, {experts}).total() == Bytes(5 * inside));
    CHECK(peak(6, {}).total() - peak(6, {activation}).total() == Bytes(5 * output));
    CHECK(peak(1, {experts}).total() == peak(1, {}).total());
  }
}

TEST_CASE("a loop issues the products of a device's experts, and their biases, behind the first", "[model][experts]") {
  Transformer model = preset("qwen3-30b-a3b");
  const auto calls = [&](std::size_t experts, Direction direction) {
    const DeviceRows rows{.copies = std::vector<std::int64_t>(experts, 100)};
    return work_of(layer_operations(model, {}), rows, {DensePart::experts}, direction).host_calls();
  };
  const HostCalls one = calls(1, Direction::forward);
  CHECK(one.in_loops == 0);
  CHECK(calls(4, Direction::forward) == HostCalls{.kernels = one.kernels, .in_loops = 3 * 2});  // two products
  CHECK(calls(4, Direction::backward).in_loops == 3 * 4);
  model.moe->biases = true;
  CHECK(calls(4, Direction::forward).in_loops == 3 * (2 + 2));  // and a product and a sum for the biases
  CHECK(calls(4, Direction::backward).in_loops == 3 * (4 + 4));
}

TEST_CASE("a router that is not fused has 19 kernels more forward, and nine backward", "[model][experts]") {
  const Transformer model = preset("qwen3-30b-a3b");
  const auto router = [&](bool fused, Direction direction) {
    const LayerOperations operations = layer_operations(model, {.router_fusion = fused});
    return work_of(operations, {.all = 64, .stream = 64}, {DensePart::router}, direction);
  };
  for (const auto& [direction, more] : {std::pair{Direction::forward, 19}, std::pair{Direction::backward, 9}}) {
    CHECK(router(false, direction).launches() == router(true, direction).launches() + more);
    // Eight of them pass over 64 x 128 probabilities in fp32.
    CHECK(router(false, direction).traffic() - router(true, direction).traffic() == Bytes(8 * 64 * 128 * 4));
  }
}

}  // namespace
}  // namespace hdpsim
