#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"

using namespace hdpsim::kernels;
using namespace hdpsim::kernels::cuda;

namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

/// Times that each (query row, key row) is under the mask.
std::map<Pair, int> pairs_of(const std::vector<AttentionBlock>& blocks) {
  std::map<Pair, int> pairs;
  for (const AttentionBlock& block : blocks) {
    for (std::int64_t i = 0; i < block.queries; ++i) {
      const KeyRange seen = seen_keys(block, i);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) ++pairs[{block.query_begin + i, block.key_begin + j}];
    }
  }
  return pairs;
}

std::map<Pair, int> pairs_of(const std::vector<AttentionTile>& tiles) {
  std::map<Pair, int> pairs;
  for (const AttentionTile& tile : tiles) {
    for (std::int32_t i = 0; i < tile.queries; ++i) {
      for (std::int32_t j = tile.hidden_keys(i); j < tile.seen_keys(i); ++j)
        ++pairs[{tile.query_row + i, tile.key_row + j}];
    }
  }
  return pairs;
}

/// Documents of up to 40 rows a side, some empty on one side, with gaps between them.
std::vector<AttentionBlock> random_blocks(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  std::vector<AttentionBlock> blocks;
  std::int64_t query = 0;
  std::int64_t key = 0;
  for (std::int64_t count = below(6); count >= 0; --count) {
    query += below(3);
    key += below(3);
    blocks.push_back({query, below(4) == 0 ? 0 : below(41), key, below(4) == 0 ? 0 : below(41),
                      below(2) == 0 ? Mask::full : Mask::causal});
    if (blocks.back().mask == Mask::causal && below(2) == 0) blocks.back().lead = below(60) - 20;
    if (blocks.back().mask == Mask::causal && below(2) == 0) blocks.back().window = 1 + below(30);
    query += blocks.back().queries;
    key += blocks.back().keys;
  }
  return blocks;
}

}  // namespace

TEST_CASE("tiles cover what the mask shows exactly once, whichever side they own", "[tiles]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::vector<AttentionBlock> blocks = random_blocks(random);
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 17);
    REQUIRE(pairs_of(query_tiles(blocks, rows)) == pairs_of(blocks));
    REQUIRE(pairs_of(key_tiles(blocks, rows)) == pairs_of(blocks));
  }
}

TEST_CASE("every query row is in one tile, also where it sees no key", "[tiles]") {
  const std::vector<AttentionBlock> blocks = {{0, 10, 0, 3, Mask::causal}, {10, 5, 3, 0, Mask::full}};
  std::vector<int> times(15, 0);
  for (const AttentionTile& tile : query_tiles(blocks, 4)) {
    for (std::int32_t i = 0; i < tile.queries; ++i)
      ++times.at(static_cast<std::size_t>(tile.query_row) + static_cast<std::size_t>(i));
  }
  CHECK(times == std::vector<int>(15, 1));
}

TEST_CASE("a tile of queries carries no key that none of them sees, a tile of keys no query that sees none",
          "[tiles]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::vector<AttentionBlock> blocks = random_blocks(random);
    for (const AttentionTile& tile : query_tiles(blocks, 8)) {
      REQUIRE(tile.seen_keys(tile.queries - 1) == tile.keys);
      REQUIRE(tile.hidden_keys(0) == 0);
    }
    for (const AttentionTile& tile : key_tiles(blocks, 8)) {
      REQUIRE(tile.seen_keys(0) > 0);
      REQUIRE(tile.hidden_keys(tile.queries - 1) < tile.keys);
    }
  }
}

TEST_CASE("tiles of a window hold no more keys than it and their queries, wherever in the document", "[tiles]") {
  const std::vector<AttentionBlock> blocks = {{0, 1000, 0, 1000, Mask::causal, 100}};
  // The last query's window begins 63 keys behind the first one's.
  for (const AttentionTile& tile : query_tiles(blocks, 64)) CHECK(tile.keys <= 100 + 63);
  for (const AttentionTile& tile : key_tiles(blocks, 64)) CHECK(tile.queries <= 100 + 63);
}

TEST_CASE("the longest tiles come first and equal ones keep the order of the documents", "[tiles]") {
  const std::vector<AttentionBlock> blocks = {{0, 8, 0, 8, Mask::causal}, {8, 8, 8, 8, Mask::causal}};
  const std::vector<AttentionTile> of_queries = query_tiles(blocks, 4);
  const std::vector<AttentionTile> expected_of_queries = {
      {4, 4, 0, 8, 5, no_window}, {12, 4, 8, 8, 5, no_window}, {0, 4, 0, 4, 1, no_window}, {8, 4, 8, 4, 1, no_window}};
  CHECK(of_queries == expected_of_queries);
  // Key row 4 is first seen by query 4, which sees one key of the tile.
  const std::vector<AttentionTile> expected_of_keys = {
      {0, 8, 0, 4, 1, no_window}, {8, 8, 8, 4, 1, no_window}, {4, 4, 4, 4, 1, no_window}, {12, 4, 12, 4, 1, no_window}};
  CHECK(key_tiles(blocks, 4) == expected_of_keys);
}

TEST_CASE("an order visits every tile with every head once, section after section", "[tiles]") {
  const TileOrder order{.tiles = 3, .heads = 6, .section = 2};
  std::map<std::pair<int, int>, int> times;
  int last_section = 0;
  for (int item = 0; item < order.items(); ++item) {
    const TileOrder::Item at = order.at(item);
    ++times[{at.tile, at.head}];
    REQUIRE(at.head / order.section >= last_section);
    last_section = at.head / order.section;
  }
  CHECK(times.size() == 18);
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& entry) { return entry.second == 1; }));
}

TEST_CASE("heads run together as long as their bytes fit the cache", "[tiles]") {
  CHECK(heads_in_cache(6, 1000, 6000) == 6);
  CHECK(heads_in_cache(6, 1000, 5999) == 3);  // 5 and 4 do not divide 6.
  CHECK(heads_in_cache(6, 1000, 2000) == 2);
  CHECK(heads_in_cache(6, 1000, 0) == 1);
}

TEST_CASE("an order takes what fits the cache for a section, and no more items than 31 bits count", "[tiles]") {
  const TileOrder order = tile_order(5, 8, 1000, 2500);
  CHECK(order.items() == 40);
  CHECK(order.section == 2);
  CHECK_NOTHROW(tile_order(std::size_t{1} << 20, 1024, 1, 0));
  CHECK_THROWS_AS(tile_order(std::size_t{1} << 21, 1024, 1, 0), UnsupportedInput);
}

TEST_CASE("a group of heads is computed in as few parts as keep the device busy", "[tiles]") {
  CHECK(parts_of_group(8, 100, 100) == 1);
  CHECK(parts_of_group(8, 100, 101) == 2);
  CHECK(parts_of_group(6, 10, 35) == 6);  // 4 and 5 do not divide 6.
  CHECK(parts_of_group(8, 1, 100) == 8);
  CHECK(parts_of_group(1, 0, 100) == 1);
}

TEST_CASE("rows beyond 31 bits are refused", "[tiles]") {
  const std::vector<AttentionBlock> blocks = {{std::int64_t{1} << 31, 1, 0, 1, Mask::full}};
  CHECK_THROWS_AS(query_tiles(blocks, 128), UnsupportedInput);
  CHECK_THROWS_AS(key_tiles(blocks, 128), UnsupportedInput);
}
