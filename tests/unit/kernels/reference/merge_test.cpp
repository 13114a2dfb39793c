#include <cmath>

#include "kernels/reference/reference_attention.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

using namespace hdpsim::kernels;
using namespace hdpsim::kernels::reference;
using namespace hdpsim::test;

namespace {

constexpr double lse_of_nothing = -std::numeric_limits<double>::infinity();
constexpr double bound = 1e-13;

const AttentionHeads heads{2, 1, 3, 0.6F};
constexpr std::int64_t rows = 4;

AttentionResult random_result(std::uint64_t seed, double lse_deviation = 1) {
  return {to_double(random_tensor(seed, rows * 2 * 3)), to_double(random_tensor(seed + 1, 2 * rows, lse_deviation))};
}
AttentionResult nothing() {
  return {std::vector<double>(rows * 2 * 3, 0.0), std::vector<double>(2 * rows, lse_of_nothing)};
}
AttentionResult merged(AttentionResult a, const AttentionResult& b) {
  merge(heads, a, b);
  return a;
}
void check_equal(const AttentionResult& a, const AttentionResult& b) {
  CHECK(relative_error(a.o, b.o) <= bound);
  CHECK(relative_error(a.lse, b.lse) <= bound);
}

}  // namespace

TEST_CASE("merging with rows that saw no key changes nothing, from either side", "[merge]") {
  const AttentionResult result = random_result(1);
  check_equal(merged(result, nothing()), result);
  check_equal(merged(nothing(), result), result);
  check_equal(merged(nothing(), nothing()), nothing());
}

TEST_CASE("merging commutes and associates", "[merge][property]") {
  for (std::uint64_t seed = 10; seed < 40; seed += 6) {
    INFO("seed " << seed);
    const AttentionResult a = random_result(seed, 5);
    const AttentionResult b = random_result(seed + 2, 5);
    const AttentionResult c = random_result(seed + 4, 5);
    check_equal(merged(a, b), merged(b, a));
    check_equal(merged(merged(a, b), c), merged(a, merged(b, c)));
  }
}

TEST_CASE("the part with the larger LSE wins where they differ by 80, without overflow at any size", "[merge]") {
  for (const double base : {-700.0, 0.0, 700.0, 1e4}) {
    CAPTURE(base);
    AttentionResult large = random_result(50);
    AttentionResult small = random_result(52);
    for (double& lse : large.lse) lse = base + 80;
    for (double& lse : small.lse) lse = base;
    check_equal(merged(large, small), large);
    check_equal(merged(small, large), large);
  }
}

TEST_CASE("keys in k parts, merged, are the keys unsplit", "[merge]") {
  constexpr std::int64_t keys = 13;
  const auto q = to_double(random_tensor(60, rows * 2 * 3));
  const auto k = to_double(random_tensor(61, keys * 3, 3));
  const auto v = to_double(random_tensor(62, keys * 3));
  const AttentionBlock whole[] = {{0, rows, 0, keys, Mask::full}};
  const AttentionResult unsplit = attention_forward({heads, whole, q, k, v});
  for (const std::int64_t parts : {1, 2, 3, 5, 13}) {
    INFO(parts << " parts");
    AttentionResult sum = nothing();
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = keys * part / parts;
      const AttentionBlock block[] = {{0, rows, begin, keys * (part + 1) / parts - begin, Mask::full}};
      merge(heads, sum, attention_forward({heads, block, q, k, v}));
    }
    check_equal(sum, unsplit);
  }
}

TEST_CASE("gradients of parts of the keys, with the LSE of all, add up to the gradients unsplit", "[merge]") {
  constexpr std::int64_t keys = 9;
  const auto q = to_double(random_tensor(70, rows * 2 * 3));
  const auto k = to_double(random_tensor(71, keys * 3));
  const auto v = to_double(random_tensor(72, keys * 3));
  const auto d_o = to_double(random_tensor(73, rows * 2 * 3));
  const AttentionBlock whole[] = {{0, rows, 0, keys, Mask::full}};
  const AttentionResult forward = attention_forward({heads, whole, q, k, v});
  const auto delta = attention_delta(heads, forward.o, d_o);
  const AttentionGradients unsplit = attention_backward({heads, whole, q, k, v}, d_o, forward.lse, delta);
  const AttentionBlock first[] = {{0, rows, 0, 4, Mask::full}};
  const AttentionBlock second[] = {{0, rows, 4, 5, Mask::full}};
  AttentionGradients sum = attention_backward({heads, first, q, k, v}, d_o, forward.lse, delta);
  const AttentionGradients rest = attention_backward({heads, second, q, k, v}, d_o, forward.lse, delta);
  for (std::size_t i = 0; i < sum.d_q.size(); ++i) sum.d_q[i] += rest.d_q[i];
  for (std::size_t i = 0; i < sum.d_k.size(); ++i) sum.d_k[i] += rest.d_k[i];
  CHECK(relative_error(sum.d_q, unsplit.d_q) <= bound);
  CHECK(relative_error(sum.d_k, unsplit.d_k) <= bound);
}
