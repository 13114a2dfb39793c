#include "kernels/ring/sharding.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

using Pairs = std::multiset<std::pair<std::int64_t, std::int64_t>>;

// Where each local row of a rank lies among the rows of all documents.
std::vector<std::int64_t> places(const ShardedDocuments& documents, int position) {
  std::vector<std::int64_t> begins;
  std::int64_t begin = 0;
  for (const std::int64_t length : documents.lengths()) begins.push_back(std::exchange(begin, begin + length));
  std::vector<std::int64_t> places;
  for (const Piece& piece : documents.pieces(position)) {
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      places.push_back(begins[static_cast<std::size_t>(piece.document)] + piece.begin + row);
    }
  }
  return places;
}

// (query, key) of all that a ring attends to, as rows of the documents.
Pairs attended(const ShardedDocuments& documents) {
  Pairs pairs;
  for (int position = 0; position < documents.ranks(); ++position) {
    const auto queries = places(documents, position);
    for (int source = 0; source < documents.ranks(); ++source) {
      const auto keys = places(documents, source);
      for (const AttentionBlock& block : documents.blocks(position, source)) {
        for (std::int64_t i = 0; i < block.queries; ++i) {
          const std::int64_t seen = block.mask == Mask::full ? block.keys : i + 1 + block.keys - block.queries;
          for (std::int64_t j = 0; j < seen; ++j) {
            pairs.emplace(queries[static_cast<std::size_t>(block.query_begin + i)],
                          keys[static_cast<std::size_t>(block.key_begin + j)]);
          }
        }
      }
    }
  }
  return pairs;
}

Pairs causal(const std::vector<std::int64_t>& lengths) {
  Pairs pairs;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    for (std::int64_t query = 0; query < length; ++query) {
      for (std::int64_t key = 0; key <= query; ++key) pairs.emplace(begin + query, begin + key);
    }
    begin += length;
  }
  return pairs;
}

TEST_CASE("every pair of a query and an earlier key of its document is attended to once", "[ring][property]") {
  std::mt19937 random(1);
  std::vector<std::vector<std::int64_t>> batches = {{}, {0}, {1}, {16}, {17}, {3, 0, 1, 31, 2}};
  for (int batch = 0; batch < 10; ++batch) {
    batches.emplace_back(1 + random() % 4);
    for (std::int64_t& length : batches.back()) length = static_cast<std::int64_t>(random() % 40);
  }
  for (const std::vector<std::int64_t>& lengths : batches) {
    const Pairs expected = causal(lengths);
    for (const int ranks : {1, 2, 3, 4, 5, 8}) {
      for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
        CAPTURE(lengths, ranks, sharding == Sharding::zigzag);
        REQUIRE(attended({lengths, ranks, sharding}) == expected);
      }
    }
  }
}

TEST_CASE("every row has one owner, and the rows of a rank lie in the order of its pieces", "[ring]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const ShardedDocuments documents({37, 0, 5, 64}, ranks);
    std::set<std::int64_t> owned;
    std::int64_t most = 0;
    for (int position = 0; position < ranks; ++position) {
      std::int64_t local = 0;
      for (const Piece& piece : documents.pieces(position)) {
        REQUIRE(piece.local_begin == local);
        local += piece.rows;
      }
      REQUIRE(documents.rows(position) == local);
      most = std::max(most, local);
      for (const std::int64_t place : places(documents, position)) REQUIRE(owned.insert(place).second);
    }
    REQUIRE(owned.size() == 37 + 5 + 64);
    REQUIRE(documents.most_rows() == most);
  }
}

TEST_CASE("zigzag: rank r holds chunk r and chunk 2 n - 1 - r", "[ring]") {
  // 10 rows in 4 chunks: they begin at floor(c 10 / 4) = 0, 2, 5, 7.
  const ShardedDocuments documents({10}, 2);
  REQUIRE(documents.pieces(0) == std::vector<Piece>{{0, 0, 2, 0}, {0, 7, 3, 2}});
  REQUIRE(documents.pieces(1) == std::vector<Piece>{{0, 2, 3, 0}, {0, 5, 2, 3}});
}

TEST_CASE("contiguous: rank r holds chunk r", "[ring]") {
  const ShardedDocuments documents({10, 4}, 3, Sharding::contiguous);
  REQUIRE(documents.pieces(1) == std::vector<Piece>{{0, 3, 3, 0}, {1, 1, 1, 3}});
}

TEST_CASE("zigzag: the three kinds of block", "[ring]") {
  const ShardedDocuments documents({16}, 4);  // chunks of two rows; every rank holds four
  using Blocks = std::vector<AttentionBlock>;
  REQUIRE(documents.blocks(2, 2) == Blocks{{0, 4, 0, 4, Mask::causal}});
  REQUIRE(documents.blocks(2, 1) == Blocks{{0, 4, 0, 2, Mask::full}});
  REQUIRE(documents.blocks(2, 3) == Blocks{{2, 2, 0, 4, Mask::full}});
}

TEST_CASE("zigzag: where 2 n divides the lengths, every rank does the same work in every step", "[ring]") {
  for (const int ranks : {2, 3, 4, 8}) {
    const ShardedDocuments documents({10L * ranks, 2L * ranks, 6L * ranks}, ranks);
    for (int step = 0; step < ranks; ++step) {
      const std::int64_t work = mask_area(documents.blocks(0, (ranks - step) % ranks));
      for (int position = 1; position < ranks; ++position) {
        CAPTURE(ranks, step, position);
        REQUIRE(mask_area(documents.blocks(position, (position + ranks - step) % ranks)) == work);
      }
    }
  }
}

TEST_CASE("the longest document that can be counted is cut without overflow", "[ring]") {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  const ShardedDocuments documents({longest}, 8);
  std::int64_t rows = 0;
  for (int position = 0; position < 8; ++position) {
    REQUIRE(documents.rows(position) >= longest / 8 - 1);
    REQUIRE(documents.rows(position) <= longest / 8 + 1);
    rows += documents.rows(position);
  }
  REQUIRE(rows == longest);
}

TEST_CASE("documents of negative length and rings of no ranks are refused", "[ring]") {
  REQUIRE_THROWS_AS(ShardedDocuments({4, -1}, 2), UnsupportedInput);
  REQUIRE_THROWS_AS(ShardedDocuments({4}, 0), UnsupportedInput);
}

}  // namespace
}  // namespace hdpsim::kernels
