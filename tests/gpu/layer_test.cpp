// Layer kernels on a GPU against fp64, with NaN around every tensor.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/layer.h"
#include "kernels/spec/error.h"
#include "tests/gpu/device_tensor.h"
#include "tests/support/catch.h"
#include "tests/support/gpu/guarded.h"

namespace hdpsim::kernels {
namespace {

using cuda::bf16;
using emulator::random_values;
using emulator::rounding_of;
using emulator::worst;

// Of the largest value, for what is computed in fp32 with the device's approximate exp2, log2 and rsqrt.
constexpr double fp32_tolerance = 4e-6;
// Of sums over a thousand tokens in fp32.
constexpr double sum_tolerance = 2e-5;

template <class T>
double worst_of(DeviceTensor<T>& found, std::span<const double> expected, double tolerance) {
  if (!found.rest_is_untouched()) return NAN;
  return worst(found.dense(), expected, rounding_of<T>, tolerance);
}

struct World {
  std::unique_ptr<Backend> backend = make_cuda_backend();
  std::mt19937 random{1};

  template <class T>
  [[nodiscard]] std::vector<double> draw(std::int64_t count, double scale = 1) {
    return random_values<T>(random, static_cast<std::size_t>(count), scale);
  }
  template <class T>
  [[nodiscard]] DeviceTensor<T> put(std::span<const double> values, std::int64_t width) {
    return DeviceTensor<T>(*backend, values, width);
  }
  template <class T>
  [[nodiscard]] DeviceTensor<T> room(std::int64_t rows, std::int64_t width) {
    return DeviceTensor<T>(*backend, rows, width);
  }
  [[nodiscard]] DeviceMemory put_ids(const std::vector<std::int32_t>& ids) {
    DeviceMemory memory = backend->allocate(ids.size() * sizeof(std::int32_t));
    backend->upload(memory.get(), ids.data(), ids.size() * sizeof(std::int32_t));
    return memory;
  }
};

const std::int32_t* ids_of(const DeviceMemory& memory) {
  return static_cast<const std::int32_t*>(memory.get());
}

TEST_CASE("RMSNorm and its gradient on a GPU, widths of models and odd ones", "[gpu][layer]") {
  World world;
  for (const auto& [tokens, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1000, 4096}, {3, 16384}, {777, 512}, {2000, 8}, {300, 1001}, {5, 9}}) {
    CAPTURE(tokens, width);
    const auto x = world.draw<bf16>(tokens * width, 2);
    const auto weight = world.draw<bf16>(width);
    const auto d_y = world.draw<bf16>(tokens * width);
    const auto before = world.draw<float>(width);
    auto device_x = world.put<bf16>(x, width);
    auto device_weight = world.put<bf16>(weight, width);
    auto device_d_y = world.put<bf16>(d_y, width);
    auto y = world.room<bf16>(tokens, width);
    auto inverse_rms = world.room<float>(tokens, 1);
    auto d_x = world.room<bf16>(tokens, width);
    auto d_weight = world.put<float>(before, width);
    world.backend->run(RmsNormForward{.tokens = tokens,
                                      .width = width,
                                      .x = device_x.data(),
                                      .weight = device_weight.data(),
                                      .y = y.data(),
                                      .inverse_rms = inverse_rms.data()});
    world.backend->run(RmsNormBackward{.tokens = tokens,
                                       .width = width,
                                       .x = device_x.data(),
                                       .weight = device_weight.data(),
                                       .inverse_rms = inverse_rms.data(),
                                       .d_y = device_d_y.data(),
                                       .d_x = d_x.data(),
                                       .d_weight = d_weight.data()});
    const auto expected = reference::rms_norm_forward(x, weight, 1e-5F);
    REQUIRE(worst_of(y, expected.y, fp32_tolerance) <= 1);
    REQUIRE(worst_of(inverse_rms, expected.inverse_rms, fp32_tolerance) <= 1);
    auto gradients = reference::rms_norm_backward(x, weight, expected.inverse_rms, d_y);
    for (std::size_t i = 0; i < before.size(); ++i) gradients.d_weight[i] += before[i];
    REQUIRE(worst_of(d_x, gradients.d_x, fp32_tolerance) <= 1);
    REQUIRE(worst_of(d_weight, gradients.d_weight, sum_tolerance) <= 1);
  }
}

TEST_CASE("the gradient of RMSNorm has the same bits in 20 runs", "[gpu][layer]") {
  World world;
  constexpr std::int64_t tokens = 4096;
  constexpr std::int64_t width = 2048;
  auto x = world.put<bf16>(world.draw<bf16>(tokens * width), width);
  auto weight = world.put<bf16>(world.draw<bf16>(width), width);
  auto d_y = world.put<bf16>(world.draw<bf16>(tokens * width), width);
  auto inverse_rms = world.put<float>(world.draw<float>(tokens), 1);
  std::vector<std::byte> first;
  for (int run = 0; run < 20; ++run) {
    auto d_x = world.room<bf16>(tokens, width);
    auto d_weight = world.put<float>(std::vector<double>(width, 0), width);
    world.backend->run(RmsNormBackward{.tokens = tokens,
                                       .width = width,
                                       .x = x.data(),
                                       .weight = weight.data(),
                                       .inverse_rms = inverse_rms.data(),
                                       .d_y = d_y.data(),
                                       .d_x = d_x.data(),
                                       .d_weight = d_weight.data()});
    auto bits = d_x.bytes();
    const auto weight_bits = d_weight.bytes();
    bits.insert(bits.end(), weight_bits.begin(), weight_bits.end());
    if (run == 0) first = bits;
    REQUIRE(bits == first);
  }
}

TEST_CASE("RoPE on a GPU turns heads within a wider row, up to position two million, and back", "[gpu][layer]") {
  World world;
  for (const auto& [heads, dim, room] :
       std::vector<std::array<std::int64_t, 3>>{{32, 128, 2048}, {3, 64, 8}, {2, 64, 5}}) {
    CAPTURE(heads, dim, room);
    constexpr std::int64_t tokens = 500;
    const std::int64_t width = heads * dim;
    const auto values = world.draw<bf16>(tokens * width);
    std::vector<std::int32_t> positions;
    for (std::int64_t token = 0; token < tokens; ++token) {
      positions.push_back(static_cast<std::int32_t>(world.random() % (1U << 21U)));
    }
    const DeviceMemory device_positions = world.put_ids(positions);
    for (const bool inverse : {false, true}) {
      DeviceTensor<bf16> x(*world.backend, values, width, room);
      world.backend->run(Rope{.tokens = tokens,
                              .heads = heads,
                              .dim = dim,
                              .stride = width + room,
                              .base = 500000,
                              .inverse = inverse,
                              .x = x.data(),
                              .positions = ids_of(device_positions)});
      std::vector<double> expected = values;
      reference::rope(expected, positions, dim, 500000, inverse);
      REQUIRE(worst_of(x, expected, fp32_tolerance) <= 1);
    }
  }
}

TEST_CASE("SwiGLU and its gradient in place on a GPU", "[gpu][layer]") {
  World world;
  for (const auto& [tokens, width] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{300, 11008}, {1000, 72}, {33, 1003}}) {
    CAPTURE(tokens, width);
    const auto gate_up = world.draw<bf16>(tokens * 2 * width, 10);
    const auto d_y = world.draw<bf16>(tokens * width);
    auto device_gate_up = world.put<bf16>(gate_up, 2 * width);
    auto device_d_y = world.put<bf16>(d_y, width);
    auto y = world.room<bf16>(tokens, width);
    world.backend->run(
        SwigluForward{.tokens = tokens, .width = width, .gate_up = device_gate_up.data(), .y = y.data()});
    REQUIRE(worst_of(y, reference::swiglu_forward(gate_up, width), fp32_tolerance) <= 1);
    world.backend->run(SwigluBackward{.tokens = tokens,
                                      .width = width,
                                      .gate_up = device_gate_up.data(),
                                      .d_y = device_d_y.data(),
                                      .d_gate_up = device_gate_up.data()});
    REQUIRE(worst_of(device_gate_up, reference::swiglu_backward(gate_up, d_y, width), fp32_tolerance) <= 1);
  }
}

TEST_CASE("sums and casts on a GPU, of bf16 and fp32, aligned and not", "[gpu][layer]") {
  World world;
  for (const std::int64_t count : {1, 8, 1'000'003}) {
    for (const std::int64_t shift : {0, 1}) {  // elements left out at the front
      CAPTURE(count, shift);
      const auto a = world.draw<float>(count + shift);
      const auto b = world.draw<float>(count + shift);
      auto device_a = world.put<float>(a, count + shift);
      auto device_b = world.put<float>(b, count + shift);
      world.backend->run(Add{.count = count,
                             .a = device_a.data() + shift,
                             .b = device_b.data() + shift,
                             .y = device_b.data() + shift,
                             .fp32 = true});
      std::vector<double> sum = b;
      for (std::size_t i = static_cast<std::size_t>(shift); i < sum.size(); ++i) sum[i] += a[i];
      REQUIRE(worst_of(device_b, sum, 1e-7) <= 1);

      auto rounded = world.put<bf16>(std::vector<double>(a.size(), 0), count + shift);
      world.backend->run(Cast{.count = count, .from = device_a.data() + shift, .to = rounded.data() + shift});
      std::vector<double> nearest(a.size(), 0);
      for (std::size_t i = static_cast<std::size_t>(shift); i < a.size(); ++i) {
        nearest[i] = cuda::to_float(cuda::to_bf16(static_cast<float>(a[i])));
      }
      REQUIRE(rounded.dense() == nearest);
      world.backend->run(
          Add{.count = count, .a = rounded.data() + shift, .b = rounded.data() + shift, .y = rounded.data() + shift});
      for (double& value : nearest) value *= 2;
      REQUIRE(rounded.dense() == nearest);
      auto wide = world.put<float>(std::vector<double>(a.size(), 0), count + shift);
      world.backend->run(
          Cast{.count = count, .from = rounded.data() + shift, .to = wide.data() + shift, .to_fp32 = true});
      REQUIRE(wide.dense() == nearest);
      REQUIRE((rounded.rest_is_untouched() && wide.rest_is_untouched()));
    }
  }
}

TEST_CASE("embedding rows on a GPU are copied exactly, their gradients add up", "[gpu][layer]") {
  World world;
  for (const auto& [tokens, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{3000, 4096}, {500, 65}}) {
    CAPTURE(tokens, width);
    constexpr std::int64_t vocabulary = 97;
    const auto table = world.draw<bf16>(vocabulary * width);
    const auto d_y = world.draw<bf16>(tokens * width);
    std::vector<std::int32_t> ids;
    for (std::int64_t token = 0; token < tokens; ++token) {
      ids.push_back(static_cast<std::int32_t>(world.random() % vocabulary));
    }
    const DeviceMemory device_ids = world.put_ids(ids);
    auto device_table = world.put<bf16>(table, width);
    auto device_d_y = world.put<bf16>(d_y, width);
    auto y = world.room<bf16>(tokens, width);
    auto d_table = world.put<float>(std::vector<double>(static_cast<std::size_t>(vocabulary * width), 0), width);
    world.backend->run(EmbeddingForward{.tokens = tokens,
                                        .vocabulary = vocabulary,
                                        .width = width,
                                        .table = device_table.data(),
                                        .ids = ids_of(device_ids),
                                        .y = y.data()});
    REQUIRE(y.dense() == reference::embedding_forward(table, ids, width));
    world.backend->run(EmbeddingBackward{.tokens = tokens,
                                         .vocabulary = vocabulary,
                                         .width = width,
                                         .ids = ids_of(device_ids),
                                         .d_y = device_d_y.data(),
                                         .d_table = d_table.data()});
    REQUIRE(worst_of(d_table, reference::embedding_backward(ids, d_y, vocabulary), sum_tolerance) <= 1);
  }
}

TEST_CASE("cross-entropy on a GPU, vocabularies of models and odd ones, some tokens ignored", "[gpu][layer]") {
  World world;
  for (const auto& [tokens, vocabulary] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{300, 32000}, {40, 128256}, {70, 50257}, {9, 7}}) {
    CAPTURE(tokens, vocabulary);
    const auto logits = world.draw<bf16>(tokens * vocabulary, 12);
    std::vector<std::int32_t> targets;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto target = static_cast<std::int32_t>(world.random() % static_cast<unsigned>(vocabulary));
      targets.push_back(token % 5 == 3 ? -1 : target);
    }
    const DeviceMemory device_targets = world.put_ids(targets);
    auto device_logits = world.put<bf16>(logits, vocabulary);
    auto loss = world.room<float>(tokens, 1);
    world.backend->run(CrossEntropy{.tokens = tokens,
                                    .vocabulary = vocabulary,
                                    .scale = 0.25F,
                                    .logits = device_logits.data(),
                                    .targets = ids_of(device_targets),
                                    .loss = loss.data()});
    const auto expected = reference::cross_entropy(logits, targets, 0.25);
    REQUIRE(worst_of(loss, expected.loss, fp32_tolerance) <= 1);
    REQUIRE(worst_of(device_logits, expected.d_logits, fp32_tolerance) <= 1);
  }
}

TEST_CASE("three steps of AdamW on a GPU", "[gpu][layer]") {
  World world;
  constexpr std::int64_t count = 300'001;
  auto master = world.draw<float>(count);
  std::vector<double> m(count, 0);
  std::vector<double> v(count, 0);
  auto device_master = world.put<float>(master, count);
  auto device_m = world.put<float>(m, count);
  auto device_v = world.put<float>(v, count);
  auto parameter = world.room<bf16>(1, count);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const auto gradient = world.draw<float>(count);
    auto device_gradient = world.put<float>(gradient, count);
    const Adam op{.count = count,
                  .step = step,
                  .rate = 0.01F,
                  .decay = 0.1F,
                  .gradient_scale = 0.5F,
                  .master = device_master.data(),
                  .gradient = device_gradient.data(),
                  .m = device_m.data(),
                  .v = device_v.data(),
                  .parameter = parameter.data()};
    world.backend->run(op);
    reference::adam(op, master, m, v, gradient);
  }
  REQUIRE(worst_of(device_master, master, fp32_tolerance) <= 1);
  REQUIRE(worst_of(device_m, m, fp32_tolerance) <= 1);
  REQUIRE(worst_of(device_v, v, fp32_tolerance) <= 1);
  REQUIRE(worst_of(parameter, master, fp32_tolerance) <= 1);
}

TEST_CASE("delta on a GPU, with room between rows", "[gpu][layer]") {
  World world;
  for (const auto& [rows, heads, dim, room] :
       std::vector<std::array<std::int64_t, 4>>{{1000, 32, 128, 0}, {777, 5, 64, 64}, {65, 3, 64, 3}}) {
    CAPTURE(rows, heads, dim, room);
    const std::int64_t width = heads * dim;
    const auto o = world.draw<bf16>(rows * width);
    const auto d_o = world.draw<bf16>(rows * width);
    DeviceTensor<bf16> device_o(*world.backend, o, width, room);
    DeviceTensor<bf16> device_d_o(*world.backend, d_o, width, room);
    auto delta = world.room<float>(heads, rows);
    const AttentionHeads shape{.heads = heads, .kv_heads = 1, .dim = dim, .scale = 1};
    world.backend->run(AttentionDelta{.heads = shape,
                                      .rows = rows,
                                      .o = {device_o.data(), device_o.stride()},
                                      .d_o = {device_d_o.data(), device_d_o.stride()},
                                      .delta = delta.data()});
    REQUIRE(worst_of(delta, reference::attention_delta(shape, o, d_o), fp32_tolerance) <= 1);
  }
}

TEST_CASE("shapes that no layer kernel takes are named, and empty ones are no work", "[gpu][layer]") {
  World world;
  auto x = world.room<bf16>(1, 8);
  RmsNormForward wide{.tokens = 1, .width = 16392, .x = x.data(), .weight = x.data(), .y = x.data()};
  REQUIRE_THROWS_WITH(world.backend->run(wide), Catch::Matchers::Contains("RMSNorm: width of 16392"));
  wide.tokens = 0;
  REQUIRE_NOTHROW(world.backend->run(wide));
  REQUIRE_NOTHROW(world.backend->run(Add{}));
  REQUIRE_NOTHROW(world.backend->run(CrossEntropy{}));
  REQUIRE_THROWS_AS(world.backend->run(Rope{.tokens = 1, .heads = 1, .dim = 512, .stride = 512}), UnsupportedInput);
  world.backend->synchronize();
}

}  // namespace
}  // namespace hdpsim::kernels
