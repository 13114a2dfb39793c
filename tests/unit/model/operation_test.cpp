#include "sim/model/operation.h"

#include "tests/support/catch.h"

namespace hdpsim {

TEST_CASE("FLOPs of attention are 4 heads dim pairs, and backward has five products in place of two", "[operation]") {
  Attention op{.blocks = {{4, 4, Mask::causal, 2}, {3, 5, Mask::full, 1}}, .heads = 2, .kv_heads = 1, .head_dim = 64};
  constexpr double pairs = 2 * 10 + 3 * 5;
  CHECK(pairs_of(op) == pairs);
  CHECK(flops_of(op).count() == 4 * 2 * 64 * pairs);
  op.direction = Direction::backward;
  CHECK(flops_of(op).count() == 5.0 / 2 * 4 * 2 * 64 * pairs);
}

TEST_CASE("a product multiplies and adds once for every column of a row", "[operation]") {
  CHECK(flops_of(Gemm{3, 5, 7}).count() == 2 * 3 * 5 * 7);
}

}  // namespace hdpsim
