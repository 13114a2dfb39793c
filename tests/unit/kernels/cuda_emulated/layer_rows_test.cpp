// Kernels that work row by row: RMSNorm, RoPE, cross-entropy, delta.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/gpu/emulator.h"
// The kernels follow the emulator, which stands for nvcc.
#include "kernels/cuda/layer/attention_delta.cuh"
#include "kernels/cuda/layer/cross_entropy.cuh"
#include "kernels/cuda/layer/rms_norm.cuh"
#include "kernels/cuda/layer/rope.cuh"
#include "kernels/reference/attention.h"
#include "kernels/reference/layer.h"
#include "tests/support/catch.h"
#include "tests/support/gpu/guarded.h"

namespace hdpsim::kernels::cuda::layer {
namespace {

using emulator::Guarded;
using emulator::random_values;
using emulator::worst;

constexpr int multiprocessors = 2;  // few, so that a block takes several rows

struct RowCase {
  std::int64_t tokens;
  std::int64_t width;
};

template <int count>
void check_rms_norm(const RowCase& shape, unsigned seed) {
  CAPTURE(count, shape.tokens, shape.width, seed);
  std::mt19937 random(seed);
  const std::size_t shift = count == 8 ? 0 : 1;
  const auto size = static_cast<std::size_t>(shape.tokens * shape.width);
  const auto x = random_values<bf16>(random, size, 3);
  const auto weight = random_values<bf16>(random, static_cast<std::size_t>(shape.width));
  const auto d_y = random_values<bf16>(random, size);
  const auto d_weight_before = random_values<float>(random, static_cast<std::size_t>(shape.width));
  Guarded<bf16> device_x(x, shift);
  Guarded<bf16> device_weight(weight, shift);
  Guarded<bf16> y(size, shift);
  Guarded<float> inverse_rms(static_cast<std::size_t>(shape.tokens));
  const unsigned threads = row_threads(shape.width, count);
  const unsigned blocks = row_blocks(shape.tokens, threads, multiprocessors, 64);

  const RmsNormForward forward{.tokens = shape.tokens,
                               .width = shape.width,
                               .epsilon = 1e-3F,
                               .x = device_x.data(),
                               .weight = device_weight.data(),
                               .y = y.data(),
                               .inverse_rms = inverse_rms.data()};
  emulator::launch(
      {blocks}, threads, row_shared_bytes, [&] { rms_norm_forward<count>(forward); }, seed);
  const auto expected = reference::rms_norm_forward(x, weight, 1e-3F);
  REQUIRE(worst(y, expected.y, 1e-6) <= 1);
  REQUIRE(worst(inverse_rms, expected.inverse_rms, 1e-6) <= 1);

  // In place: d_x takes the place of d_y.
  Guarded<bf16> d_x(d_y, shift);
  Guarded<float> partial(static_cast<std::size_t>(blocks * shape.width));
  Guarded<float> d_weight(d_weight_before);
  const RmsNormBackward backward{.tokens = shape.tokens,
                                 .width = shape.width,
                                 .x = device_x.data(),
                                 .weight = device_weight.data(),
                                 .inverse_rms = inverse_rms.data(),
                                 .d_y = d_x.data(),
                                 .d_x = d_x.data(),
                                 .d_weight = d_weight.data()};
  emulator::launch(
      {blocks}, threads, row_shared_bytes, [&] { rms_norm_backward<count>(backward, partial.data()); }, seed);
  const auto column_blocks = static_cast<unsigned>((shape.width + warp_lanes - 1) / warp_lanes);
  emulator::launch(
      {column_blocks}, warp_lanes * column_shares, column_sum_shared_bytes,
      [&] { add_column_sums<column_shares>(partial.data(), blocks, shape.width, d_weight.data()); }, seed);
  auto gradients = reference::rms_norm_backward(x, weight, inverse_rms.values(), d_y);
  for (std::size_t i = 0; i < gradients.d_weight.size(); ++i) gradients.d_weight[i] += d_weight_before[i];
  REQUIRE(worst(d_x, gradients.d_x, 1e-6) <= 1);
  REQUIRE(partial.guards_hold());
  REQUIRE(worst(d_weight, gradients.d_weight, 1e-6) <= 1);
}

TEST_CASE("RMSNorm and its gradient, from one warp a row to several, rows of whole chunks or not", "[layer]") {
  unsigned seed = 1;
  for (const RowCase& shape : {RowCase{1, 8}, {5, 64}, {9, 1024}, {4, 1032}, {7, 2048}, {3, 4104}}) {
    check_rms_norm<8>(shape, ++seed);
  }
  for (const RowCase& shape : {RowCase{1, 1}, {5, 63}, {6, 513}, {3, 1025}}) check_rms_norm<1>(shape, ++seed);
}

template <int count>
void check_rope(std::int64_t heads, std::int64_t dim, std::int64_t stride, double tolerance) {
  CAPTURE(count, heads, dim, stride);
  std::mt19937 random(static_cast<unsigned>(dim));
  const std::vector<std::int32_t> positions = {0, 1, 2, 77, 4095, 131071, 2097151};
  const auto tokens = static_cast<std::int64_t>(positions.size());
  const auto values = random_values<bf16>(random, static_cast<std::size_t>(tokens * stride));
  for (const bool inverse : {false, true}) {
    Guarded<bf16> x(values, count == 8 ? 0 : 3);
    const Rope op{.tokens = tokens,
                  .heads = heads,
                  .dim = dim,
                  .stride = stride,
                  .base = 500000,
                  .inverse = inverse,
                  .x = x.data(),
                  .positions = positions.data()};
    const RopeFrequencies frequencies = rope_frequencies(op);
    emulator::launch(
        {rope_blocks(tokens, multiprocessors) / 3}, rope_threads, rope_shared_bytes,
        [&] { rotate<count>(op, frequencies); }, 5);
    std::vector<double> expected = values;
    for (std::int64_t token = 0; token < tokens; ++token) {  // what lies between the heads of two tokens stays
      const std::span<double> row =
          std::span(expected).subspan(static_cast<std::size_t>(token * stride), static_cast<std::size_t>(heads * dim));
      reference::rope(row, std::span(positions).subspan(static_cast<std::size_t>(token), 1), dim, 500000, inverse);
    }
    REQUIRE(worst(x, expected, tolerance) <= 1);
  }
}

TEST_CASE("RoPE is right at position two million as at position one, forward and back, within wider rows", "[layer]") {
  check_rope<8>(3, 64, 192, 2e-6);
  check_rope<8>(2, 128, 392, 2e-6);
  check_rope<1>(2, 64, 131, 2e-6);
  check_rope<1>(1, 6, 6, 2e-6);
}

template <int count>
void check_cross_entropy(std::int64_t tokens, std::int64_t vocabulary, double spread, unsigned seed) {
  CAPTURE(count, tokens, vocabulary, spread, seed);
  std::mt19937 random(seed);
  const auto logits = random_values<bf16>(random, static_cast<std::size_t>(tokens * vocabulary), spread);
  std::vector<std::int32_t> targets;
  for (std::int64_t token = 0; token < tokens; ++token) {
    targets.push_back(token % 4 == 2 ? -1 : static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
  }
  Guarded<bf16> device(logits, count == 8 ? 0 : 1);
  Guarded<float> loss(static_cast<std::size_t>(tokens));
  const CrossEntropy op{.tokens = tokens,
                        .vocabulary = vocabulary,
                        .scale = 0.125F,
                        .logits = device.data(),
                        .targets = targets.data(),
                        .loss = loss.data()};
  emulator::launch(
      {cross_entropy_blocks(tokens, multiprocessors)}, cross_entropy_threads, cross_entropy_shared_bytes,
      [&] { cross_entropy<count>(op); }, seed);
  const auto expected = reference::cross_entropy(logits, targets, 0.125);
  REQUIRE(worst(loss, expected.loss, 1e-6) <= 1);
  REQUIRE(worst(device, expected.d_logits, 1e-6) <= 1);
}

TEST_CASE("cross-entropy and its gradient in place: vocabularies below and above a block, flat and peaked", "[layer]") {
  check_cross_entropy<8>(5, 512, 4, 1);
  check_cross_entropy<8>(3, 16392, 30, 2);
  check_cross_entropy<1>(4, 1001, 4, 3);
  check_cross_entropy<1>(1, 1, 4, 4);
  check_cross_entropy<8>(2, 800, 20000, 5);  // differences beyond what exp can hold
}

// The columns of a vocabulary on two devices, the second of which may have none.
template <int count>
void check_cut_vocabulary(std::int64_t vocabulary, std::int64_t cut, double spread, unsigned seed) {
  CAPTURE(count, vocabulary, cut, spread, seed);
  constexpr std::int64_t tokens = 5;
  std::mt19937 random(seed);
  const auto logits = random_values<bf16>(random, static_cast<std::size_t>(tokens * vocabulary), spread);
  std::vector<std::int32_t> targets;
  for (std::int64_t token = 0; token < tokens; ++token) {
    targets.push_back(token == 2 ? -1 : static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
  }
  const auto expected = reference::cross_entropy(logits, targets, 0.125);
  struct Part {
    std::int64_t begin;
    std::int64_t columns;
  };
  const Part parts[] = {{0, cut}, {cut, vocabulary - cut}};
  std::vector<Guarded<bf16>> columns;
  Guarded<float> sums(2 * tokens);
  for (const auto& [begin, width] : parts) {
    std::vector<double> own;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto row = logits.begin() + token * vocabulary + begin;
      own.insert(own.end(), row, row + width);
    }
    Guarded<bf16>& device = columns.emplace_back(own, count == 8 ? 0 : 1);
    const LogSumExp op{.tokens = tokens,
                       .vocabulary = width,
                       .logits = device.data(),
                       .result = sums.data() + (begin == 0 ? 0 : tokens)};
    emulator::launch(
        {2}, cross_entropy_threads, cross_entropy_shared_bytes, [&] { log_sum_exp<count>(op); }, seed);
  }
  const JoinLogSumExp join{.tokens = tokens, .parts = 2, .partial = sums.data(), .result = sums.data()};
  emulator::launch(
      {1}, cross_entropy_threads, 0, [&] { join_log_sum_exp(join); }, seed);

  std::vector<double> loss(tokens, 0);
  for (std::size_t part = 0; part < 2; ++part) {
    const auto& [begin, width] = parts[part];
    std::vector<std::int32_t> here;
    for (const std::int32_t target : targets) {
      const bool is_here = target >= begin && target < begin + width;
      here.push_back(static_cast<std::int32_t>(target < 0 ? -1 : is_here ? target - begin : width));
    }
    Guarded<float> own_loss(tokens);
    const CrossEntropy op{.tokens = tokens,
                          .vocabulary = width,
                          .scale = 0.125F,
                          .logits = columns[part].data(),
                          .targets = here.data(),
                          .loss = own_loss.data(),
                          .log_sum_exp = sums.data()};
    emulator::launch(
        {2}, cross_entropy_threads, cross_entropy_shared_bytes, [&] { cross_entropy<count>(op); }, seed);
    std::vector<double> gradient;
    for (std::int64_t token = 0; token < tokens; ++token) {
      loss[static_cast<std::size_t>(token)] += own_loss.data()[token];
      const auto row = expected.d_logits.begin() + token * vocabulary + begin;
      gradient.insert(gradient.end(), row, row + width);
    }
    // A logarithm of the size of `spread` is known to 2^-24 of that.
    REQUIRE(worst(columns[part], gradient, 1e-6 + spread * 1e-7) <= 1);
  }
  for (std::size_t token = 0; token < loss.size(); ++token) {
    REQUIRE(loss[token] == Approx(expected.loss[token]).margin(1e-5 + spread * 1e-6));
  }
}

TEST_CASE("columns of a vocabulary that is cut have the loss and the gradient of the whole", "[layer]") {
  check_cut_vocabulary<8>(1024, 512, 4, 1);
  check_cut_vocabulary<1>(1001, 333, 30, 2);
  check_cut_vocabulary<1>(3, 3, 4, 3);
}

template <int count>
void check_delta(std::int64_t rows, std::int64_t heads, std::int64_t dim, std::int64_t gap) {
  CAPTURE(count, rows, heads, dim, gap);
  std::mt19937 random(static_cast<unsigned>(rows));
  const std::int64_t width = heads * dim;
  const auto o = random_values<bf16>(random, static_cast<std::size_t>(rows * width));
  const auto d_o = random_values<bf16>(random, static_cast<std::size_t>(rows * width));
  const auto spread = [&](const std::vector<double>& dense) {  // NaN in the gaps
    Guarded<bf16> result(static_cast<std::size_t>(rows * (width + gap)), count == 8 ? 0 : 1);
    for (std::int64_t i = 0; i < rows * width; ++i) {
      Guarded<bf16>::store(result.data()[i / width * (width + gap) + i % width], dense[static_cast<std::size_t>(i)]);
    }
    return result;
  };
  Guarded<bf16> device_o = spread(o);
  Guarded<bf16> device_d_o = spread(d_o);
  Guarded<float> delta(static_cast<std::size_t>(rows * heads));
  const AttentionDelta op{.heads = {.heads = heads, .kv_heads = 1, .dim = dim, .scale = 1},
                          .rows = rows,
                          .o = {device_o.data(), width + gap},
                          .d_o = {device_d_o.data(), width + gap},
                          .delta = delta.data()};
  const int lanes = delta_lanes<count>(dim);
  const DeltaGrid grid = delta_grid(op, lanes, 1);
  emulator::launch(
      {std::min(grid.x, 2U), grid.y}, delta_threads, 0, [&] { attention_delta<count>(op, lanes); }, 3);
  REQUIRE(worst(delta, reference::attention_delta(op.heads, o, d_o), 1e-6) <= 1);
}

TEST_CASE("delta is the row sum of dO o O for every head, [heads, rows]", "[layer]") {
  check_delta<8>(1, 1, 64, 0);
  check_delta<8>(37, 3, 64, 8);
  check_delta<8>(50, 2, 128, 0);
  check_delta<1>(19, 2, 64, 3);
}

}  // namespace
}  // namespace hdpsim::kernels::cuda::layer
