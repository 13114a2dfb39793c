#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

TEST_CASE("tokens go to their best experts, the lower of equals, with the softmax of these scores", "[cpu][experts]") {
  const auto backend = make_cpu_backend();
  const std::vector<float> scores = {0,  2,  1, 2,  //
                                     5,  5,  5, 5,  //
                                     -1, -3, 0, -2};
  std::vector<std::int32_t> ids(6);
  std::vector<float> weights(6);
  backend->run(RouteForward{
      .tokens = 3, .experts = 4, .chosen = 2, .scores = scores.data(), .ids = ids.data(), .weights = weights.data()});
  CHECK(ids == std::vector<std::int32_t>{1, 3, 0, 1, 2, 0});
  const double first = 1 / (1 + std::exp(-1.0));  // of scores 0 and -1
  const std::vector<double> expected = {0.5, 0.5, 0.5, 0.5, first, 1 - first};
  CHECK(relative_error(weights, expected) <= 1e-6);
  CHECK_THROWS_AS(backend->run(RouteForward{.tokens = 1, .experts = 2, .chosen = 3}), UnsupportedInput);
}

TEST_CASE("the gradient of scores is that of the softmax over the chosen ones", "[cpu][experts]") {
  const auto backend = make_cpu_backend();
  const std::vector<float> scores = {0.3F, -1, 0.9F, 0.1F};
  const std::vector<float> d_weights = {2, -1, 0.5F};
  std::vector<std::int32_t> ids(3);
  std::vector<float> weights(3);
  const auto sum_of = [&](std::vector<float> some) {
    backend->run(RouteForward{
        .tokens = 1, .experts = 4, .chosen = 3, .scores = some.data(), .ids = ids.data(), .weights = weights.data()});
    return std::inner_product(weights.begin(), weights.end(), d_weights.begin(), 0.0);
  };
  std::vector<double> expected;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    constexpr float step = 1e-2F;
    std::vector<float> more = scores;
    std::vector<float> less = scores;
    more[i] += step;
    less[i] -= step;
    expected.push_back((sum_of(more) - sum_of(less)) / (2 * step));
  }
  (void)sum_of(scores);
  std::vector<float> d_scores(4, 7);
  backend->run(RouteBackward{.tokens = 1,
                             .experts = 4,
                             .chosen = 3,
                             .ids = ids.data(),
                             .weights = weights.data(),
                             .d_weights = d_weights.data(),
                             .d_scores = d_scores.data()});
  CHECK(d_scores[1] == 0);  // not chosen
  CHECK(relative_error(d_scores, expected) <= 1e-3);
}

TEST_CASE("copies stand by expert and token, and find back to their tokens", "[cpu][experts]") {
  const auto backend = make_cpu_backend();
  const std::vector<std::int32_t> ids = {2, 0, 0, 2, 2, 1};  // of three tokens
  std::vector<std::int32_t> rows(6);
  std::vector<std::int32_t> begins(5);
  backend->run(SortCopies{
      .tokens = 3, .experts = 4, .chosen = 2, .ids = ids.data(), .rows = rows.data(), .begins = begins.data()});
  CHECK(begins == std::vector<std::int32_t>{0, 2, 3, 6, 6});
  CHECK(rows == std::vector<std::int32_t>{3, 0, 1, 4, 5, 2});

  const std::vector<float> x = {1, 10, 2, 20, 3, 30};
  const std::vector<float> weights = {0.5F, 0.25F, 1, 0, 2, 3};
  std::vector<float> copies(12, 7);
  const auto of = [&](const float* of_copies) {
    return CopiesOfTokens{.tokens = 3, .chosen = 2, .width = 2, .rows = rows.data(), .weights = of_copies};
  };
  backend->run(SpreadTokens{of(nullptr), x.data(), copies.data()});
  CHECK(copies == std::vector<float>{1, 10, 2, 20, 3, 30, 1, 10, 2, 20, 3, 30});
  std::vector<float> y(6, 100);
  backend->run(SumCopies{of(weights.data()), copies.data(), y.data(), false});
  CHECK(y == std::vector<float>{0.75F, 7.5F, 2, 20, 15, 150});
  backend->run(SumCopies{of(nullptr), copies.data(), y.data(), true});
  CHECK(y == std::vector<float>{2.75F, 27.5F, 6, 60, 21, 210});
  std::vector<float> d_weights(6);
  backend->run(WeightGradients{of(nullptr), x.data(), copies.data(), d_weights.data()});
  CHECK(d_weights == std::vector<float>{101, 101, 404, 404, 909, 909});
}

TEST_CASE("columns are copied to every part of a row, and the parts of a row are added", "[cpu]") {
  const auto backend = make_cpu_backend();
  const std::vector<float> one = {1, 2, 3, 4};  // two rows of two
  std::vector<float> parts(16, 0);              // two rows of two parts, four apart
  backend->run(CopyColumns{.rows = 2,
                           .parts = 2,
                           .width = 2,
                           .from = one.data(),
                           .from_stride = 2,
                           .to = parts.data() + 1,
                           .to_stride = 8,
                           .to_part = 4});
  CHECK(parts == std::vector<float>{0, 1, 2, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 3, 4, 0});
  std::vector<float> sum(4, 1);
  backend->run(CopyColumns{.rows = 2,
                           .parts = 2,
                           .width = 2,
                           .from = parts.data() + 1,
                           .from_stride = 8,
                           .from_part = 4,
                           .to = sum.data(),
                           .to_stride = 2,
                           .add = true});
  CHECK(sum == std::vector<float>{3, 5, 7, 9});
}

TEST_CASE("the activations of linear mixing have the gradients of small steps", "[cpu]") {
  const auto backend = make_cpu_backend();
  constexpr std::int64_t count = 40;
  constexpr float step = 1e-2F;
  const std::vector<float> x = random_tensor(1, count);
  const std::vector<float> other = random_tensor(2, count);
  const std::vector<float> d_y = random_tensor(3, count);
  const auto silu = [&](float shift) {
    std::vector<float> moved = x;
    for (float& value : moved) value += shift;
    backend->run(SiluForward{.count = count, .x = moved.data(), .y = moved.data()});
    return moved;
  };
  const auto gated = [&](float of_gate, float of_x) {
    std::vector<float> gate = x;
    std::vector<float> moved = other;
    for (float& value : gate) value += of_gate;
    for (float& value : moved) value += of_x;
    backend->run(GateForward{.count = count, .gate = gate.data(), .x = moved.data(), .y = moved.data()});
    return moved;
  };
  const auto slope = [&](const std::vector<float>& more, const std::vector<float>& less) {
    std::vector<float> slopes;
    for (std::size_t i = 0; i < more.size(); ++i) slopes.push_back(d_y[i] * (more[i] - less[i]) / (2 * step));
    return slopes;
  };
  std::vector<float> d_x(count);
  std::vector<float> d_gate(count);
  backend->run(SiluBackward{.count = count, .x = x.data(), .d_y = d_y.data(), .d_x = d_x.data()});
  CHECK(relative_error(d_x, slope(silu(step), silu(-step))) <= 1e-3);
  backend->run(GateBackward{.count = count,
                            .gate = x.data(),
                            .x = other.data(),
                            .d_y = d_y.data(),
                            .d_gate = d_gate.data(),
                            .d_x = d_x.data()});
  CHECK(relative_error(d_x, slope(gated(0, step), gated(0, -step))) <= 1e-3);
  CHECK(relative_error(d_gate, slope(gated(step, 0), gated(-step, 0))) <= 1e-3);
}

}  // namespace
