// Kernels in which every element stands for itself.

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/gpu/emulator.h"
// The kernels follow the emulator, which stands for nvcc.
#include "kernels/cuda/layer/elementwise.cuh"
#include "kernels/reference/layer.h"
#include "tests/support/catch.h"
#include "tests/support/gpu/guarded.h"

namespace hdpsim::kernels::cuda::layer {
namespace {

using emulator::Guarded;
using emulator::random_values;
using emulator::worst;

// More elements than the blocks of one multiprocessor take in one go, and sizes around whole chunks.
const std::vector<std::size_t> sizes = {1, 7, 8, 9, 2049, 16384 + 5};

template <int count, class T>
void check_add(std::size_t size) {
  CAPTURE(count, size);
  std::mt19937 random(static_cast<unsigned>(size));
  const auto a = random_values<T>(random, size);
  const auto b = random_values<T>(random, size);
  const std::size_t shift = count == 8 ? 0 : 1;
  Guarded<T> first(a, shift);
  Guarded<T> sum(b, shift);
  const Add op{.count = static_cast<std::int64_t>(size), .a = first.data(), .b = sum.data(), .y = sum.data()};
  emulator::launch({element_blocks(op.count, count, 1)}, element_threads, 0, [&] { add_elements<count, T>(op); });
  std::vector<double> expected;
  for (std::size_t i = 0; i < size; ++i) expected.push_back(a[i] + b[i]);
  REQUIRE(worst(sum, expected, 1e-7) <= 1);
}

TEST_CASE("a sum may take the place of a term, bf16 or fp32, whatever its size and alignment", "[layer]") {
  for (const std::size_t size : sizes) {
    check_add<8, bf16>(size);
    check_add<1, bf16>(size);
    check_add<8, float>(size);
    check_add<1, float>(size);
  }
}

TEST_CASE("casts round to the nearest bf16 and widen exactly", "[layer]") {
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    std::mt19937 random(static_cast<unsigned>(size));
    const auto values = random_values<float>(random, size);
    Guarded<float> wide(values);
    Guarded<bf16> narrow(size);
    Guarded<float> again(size);
    const auto total = static_cast<std::int64_t>(size);
    const Cast rounding{.count = total, .from = wide.data(), .to = narrow.data()};
    const Cast widening{.count = total, .from = narrow.data(), .to = again.data(), .to_fp32 = true};
    const unsigned blocks = element_blocks(total, 8, 1);
    emulator::launch({blocks}, element_threads, 0, [&] { cast_elements<8, float, bf16>(rounding); });
    emulator::launch({blocks}, element_threads, 0, [&] { cast_elements<8, bf16, float>(widening); });
    for (std::size_t i = 0; i < size; ++i) {
      const float nearest = to_float(to_bf16(static_cast<float>(values[i])));
      REQUIRE(narrow[i] == nearest);
      REQUIRE(again[i] == nearest);
    }
    REQUIRE((narrow.guards_hold() && again.guards_hold()));
  }
}

TEST_CASE("three steps of AdamW are the formula's, and the parameter is the rounded master", "[layer]") {
  for (const std::size_t size : sizes) {
    const bool with_parameter = size % 2 == 0;
    CAPTURE(size, with_parameter);
    std::mt19937 random(static_cast<unsigned>(size));
    auto master = random_values<float>(random, size);
    std::vector<double> m(size, 0);
    std::vector<double> v(size, 0);
    Guarded<float> device_master(master);
    Guarded<float> device_m(m);
    Guarded<float> device_v(v);
    Guarded<bf16> parameter(size);
    for (std::int64_t step = 1; step <= 3; ++step) {
      const auto gradient = random_values<float>(random, size);
      Guarded<float> device_gradient(gradient);
      const Adam op{.count = static_cast<std::int64_t>(size),
                    .step = step,
                    .rate = 0.01F,
                    .decay = 0.1F,
                    .gradient_scale = 0.5F,
                    .master = device_master.data(),
                    .gradient = device_gradient.data(),
                    .m = device_m.data(),
                    .v = device_v.data(),
                    .parameter = with_parameter ? parameter.data() : nullptr};
      emulator::launch({element_blocks(op.count, 8, 1)}, element_threads, 0,
                       [&] { adam_step<8>(op, adam_correction(op)); });
      reference::adam(op, master, m, v, gradient);
    }
    REQUIRE(worst(device_master, master, 2e-6) <= 1);
    REQUIRE(worst(device_m, m, 2e-6) <= 1);
    REQUIRE(worst(device_v, v, 2e-6) <= 1);
    if (with_parameter) REQUIRE(worst(parameter, master, 2e-6) <= 1);
    REQUIRE(parameter.guards_hold());
  }
}

template <int count>
void check_swiglu(std::int64_t tokens, std::int64_t width) {
  CAPTURE(count, tokens, width);
  std::mt19937 random(static_cast<unsigned>(width));
  const std::size_t shift = count == 8 ? 0 : 1;
  const auto gate_up = random_values<bf16>(random, static_cast<std::size_t>(tokens * 2 * width), 20);
  const auto d_y = random_values<bf16>(random, static_cast<std::size_t>(tokens * width));
  Guarded<bf16> device_gate_up(gate_up, shift);
  Guarded<bf16> device_d_y(d_y, shift);
  Guarded<bf16> y(static_cast<std::size_t>(tokens * width), shift);
  const RowGrid grid = row_grid(tokens, width, count, 1);
  const SwigluForward forward{.tokens = tokens, .width = width, .gate_up = device_gate_up.data(), .y = y.data()};
  emulator::launch({grid.x, grid.y}, element_threads, 0, [&] { swiglu_forward<count>(forward); });
  REQUIRE(worst(y, reference::swiglu_forward(gate_up, width), 1e-6) <= 1);

  // In place.
  const SwigluBackward backward{.tokens = tokens,
                                .width = width,
                                .gate_up = device_gate_up.data(),
                                .d_y = device_d_y.data(),
                                .d_gate_up = device_gate_up.data()};
  emulator::launch({grid.x, grid.y}, element_threads, 0, [&] { swiglu_backward<count>(backward); });
  REQUIRE(worst(device_gate_up, reference::swiglu_backward(gate_up, d_y, width), 1e-6) <= 1);
}

TEST_CASE("SwiGLU and its gradient in place, rows wider and narrower than a block", "[layer]") {
  check_swiglu<8>(1, 8);
  check_swiglu<8>(20, 72);
  check_swiglu<8>(9, 4096);
  check_swiglu<1>(11, 5);
  check_swiglu<1>(3, 300);
}

template <int count>
void check_embedding(std::int64_t tokens, std::int64_t width) {
  CAPTURE(count, tokens, width);
  constexpr std::int64_t vocabulary = 11;
  std::mt19937 random(static_cast<unsigned>(width));
  const std::size_t shift = count == 8 ? 0 : 1;
  const auto table = random_values<bf16>(random, static_cast<std::size_t>(vocabulary * width));
  const auto d_y = random_values<bf16>(random, static_cast<std::size_t>(tokens * width));
  const auto before = random_values<float>(random, static_cast<std::size_t>(vocabulary * width));
  std::vector<std::int32_t> ids;  // each several times
  for (std::int64_t token = 0; token < tokens; ++token) ids.push_back(static_cast<std::int32_t>(random() % vocabulary));
  Guarded<bf16> device_table(table, shift);
  Guarded<bf16> y(static_cast<std::size_t>(tokens * width), shift);
  Guarded<bf16> device_d_y(d_y, shift);
  Guarded<float> d_table(before, shift);
  const RowGrid grid = row_grid(tokens, width, count, 1);
  const EmbeddingForward forward{.tokens = tokens,
                                 .vocabulary = vocabulary,
                                 .width = width,
                                 .table = device_table.data(),
                                 .ids = ids.data(),
                                 .y = y.data()};
  emulator::launch({grid.x, grid.y}, element_threads, 0, [&] { embedding_forward<count>(forward); });
  REQUIRE(worst(y, reference::embedding_forward(table, ids, width), 0) <= 0);
  const EmbeddingBackward backward{.tokens = tokens,
                                   .vocabulary = vocabulary,
                                   .width = width,
                                   .ids = ids.data(),
                                   .d_y = device_d_y.data(),
                                   .d_table = d_table.data()};
  emulator::launch({grid.x, grid.y}, element_threads, 0, [&] { embedding_backward<count>(backward); });
  auto expected = reference::embedding_backward(ids, d_y, vocabulary);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
  REQUIRE(worst(d_table, expected, 1e-6) <= 1);
}

TEST_CASE("embedding rows are copied exactly, and their gradients add up where tokens repeat", "[layer]") {
  check_embedding<8>(40, 64);
  check_embedding<8>(3, 4096);
  check_embedding<1>(25, 33);
}

}  // namespace
}  // namespace hdpsim::kernels::cuda::layer
