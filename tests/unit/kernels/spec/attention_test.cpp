#include "kernels/spec/attention.h"

#include <set>
#include <utility>

#include "kernels/spec/error.h"
#include "sim/model/mixing.h"
#include "tests/support/catch.h"

using namespace hdpsim::kernels;

namespace {

/// Does query i of a block stand at or behind key j, and near enough? Both as tokens of a document in which the last
/// key is token 0.
bool is_seen(const AttentionBlock& block, std::int64_t i, std::int64_t j) {
  if (block.mask == Mask::full) return true;
  const std::int64_t query = block.lead - (block.queries - 1 - i);
  const std::int64_t key = -(block.keys - 1 - j);
  return key <= query && (block.window == 0 || query - key < block.window);
}

std::int64_t counted_area(const AttentionBlock& block) {
  std::int64_t area = 0;
  for (std::int64_t i = 0; i < block.queries; ++i) {
    for (std::int64_t j = 0; j < block.keys; ++j) area += is_seen(block, i, j) ? 1 : 0;
  }
  return area;
}

using Pairs = std::set<std::pair<std::int64_t, std::int64_t>>;

/// All (query row, key row) under the masks, each once.
Pairs pairs_of(const std::vector<AttentionBlock>& blocks) {
  Pairs pairs;
  for (const AttentionBlock& block : blocks) {
    for (std::int64_t i = 0; i < block.queries; ++i) {
      const KeyRange seen = seen_keys(block, i);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) {
        CHECK(pairs.insert({block.query_begin + i, block.key_begin + j}).second);
      }
    }
  }
  return pairs;
}

hdpsim::Layer layer_of(std::int64_t window, std::int64_t chunk) {
  hdpsim::Layer layer;
  layer.heads = layer.kv_heads = 1;
  layer.head_dim = 64;
  layer.window = window;
  layer.attention_chunk = chunk;
  return layer;
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

TEST_CASE("keys that a query sees, and the area, are what counting pairs finds, for every window and lead",
          "[attention]") {
  for (std::int64_t queries = 0; queries < 6; ++queries) {
    for (std::int64_t keys = 0; keys < 6; ++keys) {
      for (const std::int64_t window : {0, 1, 2, 3, 5, 20}) {
        for (std::int64_t lead = -6; lead < 12; ++lead) {
          const AttentionBlock block{0, queries, 0, keys, Mask::causal, window, lead};
          INFO(queries << " queries, " << keys << " keys, window " << window << ", lead " << lead);
          REQUIRE(mask_area(block) == counted_area(block));
          for (std::int64_t i = 0; i < queries; ++i) {
            const KeyRange seen = seen_keys(block, i);
            for (std::int64_t j = 0; j < keys; ++j) REQUIRE((seen.begin <= j && j < seen.end) == is_seen(block, i, j));
          }
        }
      }
    }
  }
}

TEST_CASE("the windows and chunks of a layer have the area that the simulator prices", "[attention]") {
  for (const std::int64_t tokens : {1, 2, 7, 8, 9, 64, 1000}) {
    for (const std::int64_t reach : {1, 3, 8, 100, 5000}) {
      INFO(tokens << " tokens, reach " << reach);
      const AttentionBlock windowed{0, tokens, 0, tokens, Mask::causal, reach};
      CHECK(static_cast<double>(mask_area(windowed)) == hdpsim::attention_area(layer_of(reach, 0), tokens));
      const auto chunks = chunked_blocks({0, tokens, 0, tokens, Mask::causal}, reach);
      CHECK(static_cast<double>(mask_area(chunks)) == hdpsim::attention_area(layer_of(0, reach), tokens));
    }
  }
}

TEST_CASE("chunks show a query the keys before it in its own chunk, wherever the block lies in its document",
          "[attention]") {
  constexpr std::int64_t chunk = 4;
  for (std::int64_t queries = 0; queries < 12; ++queries) {
    for (std::int64_t keys = 0; keys < 12; ++keys) {
      for (std::int64_t first_key = 0; first_key < 6; ++first_key) {
        for (const std::int64_t lead : {-3, 0, 1, 5, 9}) {
          INFO(queries << " queries, " << keys << " keys from " << first_key << ", lead " << lead);
          const AttentionBlock block{2, queries, 7, keys, Mask::causal, 0, lead};
          const auto chunks = chunked_blocks(block, chunk, first_key);
          CHECK_NOTHROW(require_valid({1, 1, 64, 1}, chunks));
          std::int64_t rows = 0;
          for (const AttentionBlock& part : chunks) rows += part.queries;
          CHECK(rows == queries);
          Pairs expected;
          for (std::int64_t i = 0; i < queries; ++i) {
            const std::int64_t query = first_key + i + keys - queries + lead;
            for (std::int64_t j = 0; j < keys; ++j) {
              if (query < first_key + j || query / chunk != (first_key + j) / chunk) continue;
              expected.insert({2 + i, 7 + j});
            }
          }
          REQUIRE(pairs_of(chunks) == expected);
        }
      }
    }
  }
  CHECK_THROWS_AS(chunked_blocks({0, 4, 0, 4, Mask::full}, 2), UnsupportedInput);
  CHECK_THROWS_AS(chunked_blocks({0, 4, 0, 4, Mask::causal}, 0), UnsupportedInput);
}

TEST_CASE("a window or a lead without a causal mask is refused", "[attention]") {
  const AttentionBlock windowed[] = {{0, 4, 0, 4, Mask::full, 2}};
  CHECK_THROWS_WITH(require_valid({1, 1, 64, 1}, windowed),
                    "attention: a full mask has no window and no lead; a causal one has");
  const AttentionBlock negative[] = {{0, 4, 0, 4, Mask::causal, -2}};
  CHECK_THROWS_WITH(require_valid({1, 1, 64, 1}, negative),
                    "attention: a window of -2 tokens; a token sees at least itself");
}

TEST_CASE("a width of heads without a kernel is refused by name", "[attention]") {
  const std::string supported = " is not supported; 64, 128, 256, and 192 with values of 128 are";
  CHECK_THROWS_WITH(require_valid({8, 8, 96, 1}, {}), "attention: head dimension 96" + supported);
  CHECK_THROWS_WITH(require_valid({8, 8, 192, 1}, {}), "attention: head dimension 192" + supported);
  CHECK_THROWS_WITH(require_valid({8, 8, 128, 1, 64}, {}),
                    "attention: head dimension 128 with values of 64" + supported);
  CHECK_NOTHROW(require_valid({8, 8, 192, 1, 128}, {}));
  CHECK_NOTHROW(require_valid({8, 8, 256, 1, 256}, {}));
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
