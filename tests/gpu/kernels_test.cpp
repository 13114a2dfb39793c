// Kernels on a GPU: the laws of all devices (tests/unit/kernels/laws) on the path that is best here and on the portable
// one, and what only a GPU shows.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/spec/error.h"
#include "tests/support/attention_twins.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

namespace hdpsim::kernels {

std::vector<TestedDevice> tested_devices() {
  TestedDevice best{.name = "best path", .backend = make_cuda_backend(), .shapes = {}};
  best.has_sinks = false;
  best.longest = 2000;
  best.repeats = 20;
  TestedDevice portable = best;
  portable.name = "portable path";
  portable.backend = make_cuda_backend(0, AttentionPath::portable);
  // Widths of models, of vocabularies, and odd ones.
  best.shapes = {{1000, 4096}, {3, 16'384},  {777, 512},   {2000, 8},     {300, 1001},  {5, 9},
                 {30, 11'008}, {100, 72, 1}, {30, 32'000}, {10, 128'256}, {10, 50'257}, {9, 7}};
  return {best, portable};
}

namespace {

using Twins = AttentionTwins;

TEST_CASE("both paths agree on long documents", "[attention]") {
  const std::vector<TestedDevice> devices = tested_devices();
  for (const std::int64_t dim : {64, 128}) {
    const AttentionCase given{"", 4, 1, dim, {block(4096, 4096, Mask::causal), block(1500, 3000, Mask::full)}};
    std::vector<std::vector<std::vector<float>>> results;
    for (const TestedDevice& device : devices) {
      AttentionTwins twins(device, given, 17);
      device.backend->run(twins.forward_op(Side::device));
      device.backend->run(twins.delta_op(Side::device));
      device.backend->run(twins.backward_op(Side::device));
      for (const AttentionBlock& at : twins.blocks) results.push_back(twins.results_of(at));
    }
    CAPTURE(dim);
    for (std::size_t at = 0; at < 2; ++at) {
      // P and dS enter the products of backward in bf16, each off by at most 2^-9 of itself, on either path.
      for (std::size_t i = 0; i < 4; ++i) CHECK(test::relative_error(results[at][i], results[2 + at][i]) <= 1.6e-2);
    }
  }
}

TEST_CASE("a hundred launches of random packs end, with the result of the first where they repeat",
          "[attention][stress]") {
  std::mt19937_64 random(23);
  for (const TestedDevice& device : tested_devices()) {
    for (int round = 0; round < 10; ++round) {
      AttentionCase given{device.name, 4, 2, round % 2 == 0 ? 64 : 128, {}};
      for (int document = 0; document < 6; ++document) {
        const std::int64_t length = test::random_between(random, 0, 700);
        given.blocks.push_back(block(length, length, Mask::causal));
      }
      CAPTURE(given.name, round);
      AttentionTwins twins(device, given, 41);
      device.backend->run(twins.forward_op(Side::device));
      const std::vector<float> first = twins.tensors[Twins::lse].on_device(0, 4);
      for (int repeat = 0; repeat < 9; ++repeat) device.backend->run(twins.forward_op(Side::device));
      device.backend->run(twins.delta_op(Side::device));
      device.backend->run(twins.backward_op(Side::device));
      const std::vector<float> last = twins.tensors[Twins::lse].on_device(0, 4);
      REQUIRE(std::memcmp(first.data(), last.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("the gradient of RMSNorm has the same bits in 20 runs", "[layer][determinism]") {
  const TestedDevice device = tested_devices().front();
  constexpr std::int64_t tokens = 4096;
  constexpr std::int64_t width = 2048;
  std::mt19937_64 random(1);
  TwinTensor x(*device.backend, {.rows = tokens, .width = width});
  TwinTensor weight(*device.backend, {.rows = 1, .width = width});
  TwinTensor d_y(*device.backend, {.rows = tokens, .width = width});
  TwinTensor inverse_rms(*device.backend, {.rows = 1, .width = tokens, .fp32 = true});
  for (TwinTensor* const input : {&x, &weight, &d_y, &inverse_rms}) input->draw(random);
  std::vector<float> first;
  for (int run = 0; run < 20; ++run) {
    TwinTensor d_x(*device.backend, {.rows = tokens, .width = width});
    TwinTensor d_weight(*device.backend, {.rows = 1, .width = width, .fp32 = true});
    d_weight.fill(0, 0, 1);
    device.backend->run(RmsNormBackward{.tokens = tokens,
                                        .width = width,
                                        .x = x[Side::device],
                                        .weight = weight[Side::device],
                                        .inverse_rms = inverse_rms[Side::device],
                                        .d_y = d_y[Side::device],
                                        .d_x = d_x[Side::device],
                                        .d_weight = d_weight[Side::device]});
    std::vector<float> bits = d_x.on_device(0, tokens);
    const std::vector<float> of_weight = d_weight.on_device(0, 1);
    bits.insert(bits.end(), of_weight.begin(), of_weight.end());
    if (run == 0) first = bits;
    REQUIRE((bits == first));
  }
}

TEST_CASE("shapes that no kernel takes are named, and empty ones are no work", "[attention][layer]") {
  const auto backend = make_cuda_backend();
  const AttentionHeads odd{.heads = 1, .kv_heads = 1, .dim = 96, .scale = 1};
  CHECK_THROWS_AS(backend->run(AttentionForward{.heads = odd, .blocks = {}, .q = {}, .k = {}, .v = {}, .o = {}}),
                  UnsupportedInput);
  TwinTensor x(*backend, {.rows = 1, .width = 8});
  RmsNormForward wide{
      .tokens = 1, .width = 16'392, .x = x[Side::device], .weight = x[Side::device], .y = x[Side::device]};
  REQUIRE_THROWS_WITH(backend->run(wide), Catch::Matchers::Contains("RMSNorm: width of 16392"));
  wide.tokens = 0;
  REQUIRE_NOTHROW(backend->run(wide));
  REQUIRE_NOTHROW(backend->run(Add{}));
  REQUIRE_NOTHROW(backend->run(CrossEntropy{}));
  REQUIRE_THROWS_AS(backend->run(Rope{.tokens = 1, .heads = 1, .dim = 512, .stride = 512}), UnsupportedInput);
  backend->synchronize();
}

}  // namespace
}  // namespace hdpsim::kernels
