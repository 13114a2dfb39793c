#include "kernels/spec/attention.h"

#include "kernels/spec/error.h"
#include "tests/support/catch.h"

using namespace hdpsim::kernels;

namespace {

std::int64_t counted_area(const AttentionBlock& block) {
  std::int64_t area = 0;
  for (std::int64_t i = 0; i < block.queries; ++i) {
    for (std::int64_t j = 0; j < block.keys; ++j) {
      if (block.mask == Mask::full || j <= i + block.keys - block.queries) ++area;
    }
  }
  return area;
}

}  // namespace

TEST_CASE("the area of a mask is the number of pairs under it, whichever side is longer", "[attention]") {
  for (const Mask mask : {Mask::full, Mask::causal}) {
    for (std::int64_t queries = 0; queries < 7; ++queries) {
      for (std::int64_t keys = 0; keys < 7; ++keys) {
        const AttentionBlock block{3, queries, 5, keys, mask};
        INFO(queries << " queries, " << keys << " keys");
        CHECK(mask_area(block) == counted_area(block));
      }
    }
  }
}

TEST_CASE("a head dimension without a kernel is refused by name", "[attention]") {
  CHECK_THROWS_WITH(require_valid({8, 8, 96, 1}, {}), "attention: head dimension 96 is not supported; 64 and 128 are");
}

TEST_CASE("key-value heads must divide the heads", "[attention]") {
  CHECK_THROWS_AS(require_valid({8, 3, 64, 1}, {}), UnsupportedInput);
}

TEST_CASE("blocks that share a row are refused, blocks that touch are not", "[attention]") {
  const AttentionBlock touching[] = {{0, 4, 0, 4}, {4, 4, 4, 4}};
  CHECK_NOTHROW(require_valid({1, 1, 64, 1}, touching));
  const AttentionBlock sharing[] = {{4, 4, 4, 4}, {0, 5, 0, 4}};
  CHECK_THROWS_WITH(require_valid({1, 1, 64, 1}, sharing), "attention: two blocks of one launch share query row 4");
}
