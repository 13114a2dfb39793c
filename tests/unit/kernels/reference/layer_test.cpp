#include "kernels/reference/reference_layer.h"

#include <cmath>
#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/unit/kernels/reference/central_differences.h"

using namespace hdpsim::kernels;
using namespace hdpsim::kernels::reference;
using namespace hdpsim::test;

namespace {

std::vector<double> row_tensor(std::uint64_t seed, std::size_t rows, std::size_t width = 1) {
  return to_double(random_tensor(seed, rows * width));
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

TEST_CASE("RMSNorm gives rows whose root mean square is the weight's, and the gradients of that", "[layer]") {
  auto x = row_tensor(1, 3, 5);
  auto weight = std::vector<double>(5, 2.0);
  const RmsNormResult result = rms_norm_forward(x, weight, 0);
  for (std::size_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (std::size_t i = 0; i < 5; ++i) squares += result.y[row * 5 + i] * result.y[row * 5 + i];
    CHECK(std::sqrt(squares / 5) == Approx(2).epsilon(1e-14));
  }

  weight = row_tensor(2, 5);
  const auto d_y = row_tensor(3, 3, 5);
  const auto objective = [&] { return dot(rms_norm_forward(x, weight, 0.1).y, d_y); };
  const auto gradients = rms_norm_backward(x, weight, rms_norm_forward(x, weight, 0.1).inverse_rms, d_y);
  CHECK(relative_error(gradients.d_x, central_differences(x, objective)) <= 1e-8);
  CHECK(relative_error(gradients.d_weight, central_differences(weight, objective)) <= 1e-8);
}

TEST_CASE("RoPE keeps lengths, makes products depend on the distance alone, and turns back", "[layer]") {
  const auto a = row_tensor(4, 6);
  const auto b = row_tensor(5, 6);
  const auto turned = [](std::vector<double> x, std::int32_t position) {
    rope(x, std::vector<std::int32_t>{position}, 6, 100, false);
    return x;
  };
  CHECK(dot(turned(a, 9), turned(a, 9)) == Approx(dot(a, a)).epsilon(1e-14));
  CHECK(dot(turned(a, 3), turned(b, 8)) == Approx(dot(turned(a, 1000), turned(b, 1005))).epsilon(1e-10));
  auto back = turned(a, 77);
  rope(back, std::vector<std::int32_t>{77}, 6, 100, true);
  CHECK(relative_error(back, a) <= 1e-13);
  // Element 0 turns with element 3 by one radian a position.
  CHECK(turned({1, 0, 0, 0, 0, 0}, 2)[3] == Approx(std::sin(2.0)).epsilon(1e-14));
}

TEST_CASE("gradients of SwiGLU are its finite differences", "[layer]") {
  auto gate_up = row_tensor(6, 2, 6);
  const auto d_y = row_tensor(7, 2, 3);
  const auto objective = [&] { return dot(swiglu_forward(gate_up, 3), d_y); };
  CHECK(relative_error(swiglu_backward(gate_up, d_y, 3), central_differences(gate_up, objective)) <= 1e-8);
  CHECK(swiglu_forward(std::vector<double>{0, 1, 5, 3}, 2)[1] == Approx(3 / (1 + std::exp(-1.0))).epsilon(1e-14));
}

TEST_CASE("the gradient of an embedding is the transposed lookup", "[layer]") {
  const std::vector<std::int32_t> ids = {2, 0, 2};
  const auto table = row_tensor(8, 4, 3);
  const auto d_y = row_tensor(9, 3, 3);
  CHECK(dot(embedding_forward(table, ids, 3), d_y) ==
        Approx(dot(table, embedding_backward(ids, d_y, 4))).epsilon(1e-14));
}

TEST_CASE("cross-entropy: uniform logits cost log n; gradients are differences and sum to zero", "[layer]") {
  const std::vector<std::int32_t> targets = {1, -1, 3};
  const CrossEntropyResult uniform = cross_entropy(std::vector<double>(12, 7.0), targets, 1);
  CHECK(uniform.loss[0] == Approx(std::log(4.0)).epsilon(1e-14));
  CHECK(uniform.loss[1] == 0);

  auto logits = row_tensor(10, 3, 4);
  const CrossEntropyResult result = cross_entropy(logits, targets, 0.5);
  const auto objective = [&] {
    const CrossEntropyResult moved = cross_entropy(logits, targets, 0.5);
    return 0.5 * (moved.loss[0] + moved.loss[1] + moved.loss[2]);
  };
  CHECK(relative_error(result.d_logits, central_differences(logits, objective)) <= 1e-8);
  for (std::size_t token = 0; token < 3; ++token) {
    const double sum = std::accumulate(result.d_logits.begin() + static_cast<std::ptrdiff_t>(token * 4),
                                       result.d_logits.begin() + static_cast<std::ptrdiff_t>(token * 4 + 4), 0.0);
    CHECK(std::abs(sum) <= 1e-15);
  }
}

TEST_CASE("the first AdamW step moves every parameter by the rate against its gradient's sign, and decays it",
          "[layer]") {
  const Adam settings{.step = 1, .rate = 0.25F, .epsilon = 0, .decay = 0.5F, .gradient_scale = 3};
  std::vector<double> master = {1, -2, 8};
  std::vector<double> m(3, 0.0);
  std::vector<double> v(3, 0.0);
  adam(settings, master, m, v, std::vector<double>{0.01, -5, 1e6});
  const std::vector<double> expected = {1 - 0.25 - 0.125, -2 + 0.25 + 0.25, 8 - 0.25 - 1};
  CHECK(relative_error(master, expected) <= 1e-12);
}

TEST_CASE("matrix products read transposed operands as what they stand for", "[layer]") {
  const std::vector<double> a = {1, 2, 3, 4, 5, 6};             // [2, 3]
  const std::vector<double> a_transposed = {1, 4, 2, 5, 3, 6};  // [3, 2]
  const std::vector<double> b = {1, 0, 2, 1, 0, 3};             // [3, 2]
  const std::vector<double> b_transposed = {1, 2, 0, 0, 1, 3};  // [2, 3]
  const std::vector<double> c = {5, 11, 14, 23};
  MatrixProduct shape{.m = 2, .n = 2, .k = 3};
  CHECK(matrix_product(shape, a, b) == c);
  shape.a_transposed = true;
  CHECK(matrix_product(shape, a_transposed, b) == c);
  shape.b_transposed = true;
  CHECK(matrix_product(shape, a_transposed, b_transposed) == c);
}
