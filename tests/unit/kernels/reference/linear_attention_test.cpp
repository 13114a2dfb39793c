#include "kernels/reference/reference_linear_attention.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/unit/kernels/reference/central_differences.h"

using namespace hdpsim::kernels;
using namespace hdpsim::kernels::reference;
using namespace hdpsim::test;

namespace {

std::vector<double> linear_tensor(std::uint64_t seed, std::int64_t count) {
  return to_double(random_tensor(seed, static_cast<std::size_t>(count)));
}

/// Documents one after another.
struct LinearProblem {
  LinearHeads heads;
  std::vector<Document> documents;
  std::vector<double> q, k, v, log_decay, initial, d_o, d_final;

  LinearProblem(const LinearHeads& of_heads, const std::vector<std::int64_t>& lengths) : heads(of_heads) {
    std::int64_t rows = 0;
    for (const std::int64_t tokens : lengths) {
      documents.push_back({rows, tokens});
      rows += tokens;
    }
    const std::int64_t states = std::ssize(documents) * heads.heads * heads.key_dim * heads.value_dim;
    q = linear_tensor(1, rows * heads.key_heads * heads.key_dim);
    k = linear_tensor(2, rows * heads.key_heads * heads.key_dim);
    v = linear_tensor(3, rows * heads.heads * heads.value_dim);
    log_decay = linear_tensor(4, rows * heads.heads);
    for (double& value : log_decay) value = -std::abs(value);
    initial = linear_tensor(5, states);
    d_o = linear_tensor(6, rows * heads.heads * heads.value_dim);
    d_final = linear_tensor(7, states);
  }
  [[nodiscard]] LinearAttentionInput input() const { return {heads, documents, q, k, v, log_decay, initial}; }
  /// sum(dO o O) + sum(dS o S), whose gradients are what backward computes.
  [[nodiscard]] double objective() const {
    const LinearAttentionResult result = linear_attention_forward(input());
    double sum = 0;
    for (std::size_t i = 0; i < d_o.size(); ++i) sum += d_o[i] * result.o[i];
    for (std::size_t i = 0; i < d_final.size(); ++i) sum += d_final[i] * result.final_states[i];
    return sum;
  }
};

}  // namespace

TEST_CASE("gradients of linear attention are the finite differences of its output and its states", "[linear]") {
  LinearProblem problem({.heads = 4, .key_heads = 2, .key_dim = 3, .value_dim = 2}, {5, 1, 3});
  const LinearAttentionGradients gradients = linear_attention_backward(problem.input(), problem.d_o, problem.d_final);
  const auto objective = [&] { return problem.objective(); };
  CHECK(relative_error(gradients.d_q, central_differences(problem.q, objective), 1) <= 1e-8);
  CHECK(relative_error(gradients.d_k, central_differences(problem.k, objective), 1) <= 1e-8);
  CHECK(relative_error(gradients.d_v, central_differences(problem.v, objective), 1) <= 1e-8);
  CHECK(relative_error(gradients.d_log_decay, central_differences(problem.log_decay, objective), 1) <= 1e-8);
  CHECK(relative_error(gradients.d_initial, central_differences(problem.initial, objective), 1) <= 1e-8);
}

TEST_CASE("without decay a token's output is the sum of the values before it, weighed by products with their keys",
          "[linear]") {
  LinearProblem problem({.heads = 1, .key_heads = 1, .key_dim = 3, .value_dim = 2}, {6});
  std::fill(problem.log_decay.begin(), problem.log_decay.end(), 0.0);
  problem.initial.clear();
  std::vector<double> expected(12, 0.0);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double score = 0;
      for (std::size_t l = 0; l < 3; ++l) score += problem.q[i * 3 + l] * problem.k[j * 3 + l];
      for (std::size_t l = 0; l < 2; ++l) expected[i * 2 + l] += score * problem.v[j * 2 + l];
    }
  }
  CHECK(relative_error(linear_attention_forward(problem.input()).o, expected) <= 1e-14);
}

TEST_CASE("what a decay forgets is gone: a token sees itself alone behind one of exp(-1000)", "[linear]") {
  LinearProblem problem({.heads = 1, .key_heads = 1, .key_dim = 1, .value_dim = 1}, {2});
  problem.q = {7, 2};
  problem.k = {5, 3};
  problem.v = {11, 4};
  problem.log_decay = {0, -1000};
  problem.initial = {10};
  // S_1 = 10 + 5 x 11, S_2 = 3 x 4.
  CHECK(relative_error(linear_attention_forward(problem.input()).o, std::vector<double>{7 * 65, 2 * 12}) <= 1e-14);
}
