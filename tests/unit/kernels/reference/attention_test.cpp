#include "kernels/reference/reference_attention.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/unit/kernels/reference/central_differences.h"

using namespace hdpsim::kernels;
using namespace hdpsim::kernels::reference;
using namespace hdpsim::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> tensor(std::uint64_t seed, std::int64_t count) {
  return to_double(random_tensor(seed, static_cast<std::size_t>(count)));
}

/// One block over all rows; any head dimension.
struct Problem {
  AttentionHeads heads;
  std::vector<AttentionBlock> blocks;
  std::vector<double> q, k, v, d_o;
  std::vector<double> sinks = {};  ///< [heads]; empty: none.

  Problem(const AttentionHeads& of_heads, std::int64_t queries, std::int64_t keys, Mask mask)
      : heads(of_heads), blocks{{0, queries, 0, keys, mask}} {
    q = tensor(1, queries * heads.heads * heads.dim);
    k = tensor(2, keys * heads.kv_heads * heads.dim);
    v = tensor(3, keys * heads.kv_heads * heads.value_width());
    d_o = tensor(4, queries * heads.heads * heads.value_width());
  }
  [[nodiscard]] AttentionInput input() const { return {heads, blocks, q, k, v, sinks}; }
  [[nodiscard]] AttentionGradients gradients() const {
    const AttentionResult forward = attention_forward(input());
    return attention_backward(input(), d_o, forward.lse, attention_delta(heads, forward.o, d_o));
  }
  /// sum(dO o O), whose gradients are what backward computes.
  [[nodiscard]] double objective() const {
    const AttentionResult forward = attention_forward(input());
    double sum = 0;
    for (std::size_t i = 0; i < d_o.size(); ++i) sum += d_o[i] * forward.o[i];
    return sum;
  }
};

const AttentionHeads one_head{1, 1, 4, 0.5F};
const AttentionHeads shared{4, 2, 3, 0.7F};

}  // namespace

TEST_CASE("gradients of attention are the finite differences of its output, whatever the mask and the widths",
          "[attention]") {
  struct Case {
    std::int64_t queries, keys;
    Mask mask;
    std::int64_t window = 0;
    std::int64_t lead = 0;
    std::int64_t value_dim = 0;
    bool sinks = false;
  };
  std::vector<Case> cases;
  for (const Mask mask : {Mask::full, Mask::causal}) {
    for (const auto& [queries, keys] : {std::pair{3, 5}, {5, 3}, {4, 4}, {1, 1}})
      cases.push_back({queries, keys, mask});
  }
  for (const std::int64_t window : {0, 1, 2, 4}) {
    for (const std::int64_t lead : {-2, 0, 1, 3}) cases.push_back({5, 4, Mask::causal, window, lead, 0, true});
  }
  for (const std::int64_t value_dim : {1, 2, 5}) cases.push_back({4, 5, Mask::causal, 0, 0, value_dim, true});
  for (const auto& [queries, keys, mask, window, lead, value_dim, sinks] : cases) {
    INFO(queries << " queries, " << keys << " keys, " << (mask == Mask::causal ? "causal" : "full") << ", window "
                 << window << ", lead " << lead << ", values of " << value_dim);
    AttentionHeads heads = shared;
    heads.value_dim = value_dim;
    Problem problem(heads, queries, keys, mask);
    problem.blocks[0].window = window;
    problem.blocks[0].lead = lead;
    if (sinks) problem.sinks = {0.3, -1.2, 2.0, 0.0};
    const AttentionGradients gradients = problem.gradients();
    const auto objective = [&] { return problem.objective(); };
    CHECK(relative_error(gradients.d_q, central_differences(problem.q, objective), 1) <= 1e-8);
    CHECK(relative_error(gradients.d_k, central_differences(problem.k, objective), 1) <= 1e-8);
    CHECK(relative_error(gradients.d_v, central_differences(problem.v, objective), 1) <= 1e-8);
    CHECK(relative_error(gradients.d_sinks, central_differences(problem.sinks, objective), 1) <= 1e-8);
  }
}

TEST_CASE("each column of the output is the mean of its own column of values", "[attention]") {
  // Values cut into columns of one: attention over each is a column of attention over all.
  AttentionHeads heads = one_head;
  heads.value_dim = 3;
  Problem whole(heads, 5, 6, Mask::causal);
  const std::vector<double> o = attention_forward(whole.input()).o;
  heads.value_dim = 1;
  for (std::size_t column = 0; column < 3; ++column) {
    Problem part(heads, 5, 6, Mask::causal);
    for (std::size_t key = 0; key < 6; ++key) part.v[key] = whole.v[key * 3 + column];
    const std::vector<double> of_column = attention_forward(part.input()).o;
    for (std::size_t row = 0; row < 5; ++row) CHECK(of_column[row] == Approx(o[row * 3 + column]).epsilon(1e-14));
  }
}

TEST_CASE("a sink is what a result of zero with that LSE is to a merge", "[attention]") {
  Problem problem(shared, 5, 4, Mask::causal);
  problem.sinks = {0.3, -1.2, 2.0, 0.0};
  const AttentionResult with_sinks = attention_forward(problem.input());
  AttentionResult merged{std::vector<double>(with_sinks.o.size(), 0.0), {}};
  for (const double sink : problem.sinks) merged.lse.insert(merged.lse.end(), 5, sink);
  problem.sinks.clear();
  merge(problem.heads, merged, attention_forward(problem.input()));
  CHECK(relative_error(with_sinks.o, merged.o) <= 1e-14);
  CHECK(relative_error(with_sinks.lse, merged.lse) <= 1e-14);
}

TEST_CASE("a sink takes its share of the softmax, and a row without keys has its score as LSE", "[attention]") {
  // One key with the score 0 and a sink of ln 3: the key keeps a quarter.
  Problem problem({1, 1, 1, 1}, 2, 1, Mask::causal);
  problem.k = {0};
  problem.v = {8};
  problem.sinks = {std::log(3.0)};
  const AttentionResult result = attention_forward(problem.input());
  CHECK(relative_error(result.o, std::vector<double>{0, 2}) <= 1e-14);
  CHECK(relative_error(result.lse, std::vector<double>{std::log(3.0), std::log(4.0)}) <= 1e-14);
}

TEST_CASE("LSE is the logarithm of the sum of exponentials, and O the mean of values that it weighs", "[attention]") {
  Problem problem(one_head, 1, 3, Mask::full);
  problem.q = {2, 0, 0, 0};
  problem.k = {0, 9, 9, 9, std::log(2.0), 9, 9, 9, std::log(5.0), 9, 9, 9};  // scores 0, ln 2, ln 5 at scale 1/2
  problem.v = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
  const AttentionResult result = attention_forward(problem.input());
  CHECK(result.lse[0] == Approx(std::log(8.0)).epsilon(1e-14));
  CHECK(relative_error(result.o, std::vector<double>{1.0 / 8, 2.0 / 8, 5.0 / 8, 0}) <= 1e-14);
}

TEST_CASE("a causal mask is aligned to the bottom right", "[attention]") {
  // Values count the keys: the mean of 0 ... s is s / 2 where all scores are equal.
  Problem problem({1, 1, 1, 1}, 3, 5, Mask::causal);
  std::fill(problem.k.begin(), problem.k.end(), 0.0);
  problem.v = {0, 1, 2, 3, 4};
  CHECK(relative_error(attention_forward(problem.input()).o, std::vector<double>{1, 1.5, 2}) <= 1e-14);
}

TEST_CASE("rows without a key give O = 0 and LSE = -inf", "[attention]") {
  const Problem problem(one_head, 4, 2, Mask::causal);
  const AttentionResult result = attention_forward(problem.input());
  CHECK(result.lse[0] == -infinity);
  CHECK(result.lse[1] == -infinity);
  CHECK(std::isfinite(result.lse[2]));
  for (std::size_t i = 0; i < 8; ++i) CHECK(result.o[i] == 0);
}

TEST_CASE("heads of one group read the same keys", "[attention]") {
  const Problem grouped({4, 2, 3, 0.7F}, 3, 4, Mask::causal);
  // The same with a copy of each key-value head for every head that reads it.
  Problem copied({4, 4, 3, 0.7F}, 3, 4, Mask::causal);
  copied.q = grouped.q;
  for (std::size_t token = 0; token < 4; ++token) {
    for (std::size_t head = 0; head < 4; ++head) {
      for (std::size_t l = 0; l < 3; ++l) {
        copied.k[(token * 4 + head) * 3 + l] = grouped.k[(token * 2 + head / 2) * 3 + l];
        copied.v[(token * 4 + head) * 3 + l] = grouped.v[(token * 2 + head / 2) * 3 + l];
      }
    }
  }
  CHECK(attention_forward(grouped.input()).o == attention_forward(copied.input()).o);
}
