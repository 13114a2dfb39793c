#include "kernels/ring/halo_keys.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

using Row = std::pair<std::int64_t, std::int64_t>;  // document, row in it

std::vector<std::vector<Piece>> pieces_of(const ShardedDocuments& documents) {
  std::vector<std::vector<Piece>> pieces;
  pieces.reserve(static_cast<std::size_t>(documents.ranks()));
  for (int position = 0; position < documents.ranks(); ++position) pieces.push_back(documents.pieces(position));
  return pieces;
}

// The rows of documents, by their rank and place there.
std::map<std::pair<int, std::int64_t>, Row> rows_held(const std::vector<std::vector<Piece>>& pieces) {
  std::map<std::pair<int, std::int64_t>, Row> rows;
  for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
    for (const Piece& piece : pieces[rank]) {
      for (std::int64_t i = 0; i < piece.rows; ++i) {
        rows[{static_cast<int>(rank), piece.local_begin + i}] = {piece.document, piece.begin + i};
      }
    }
  }
  return rows;
}

TEST_CASE("a halo has the rows of the window before each piece, in their order, whoever holds them", "[ring][halo]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const ShardedDocuments documents({37, 0, 5, 64, 1}, ranks);
    const auto pieces = pieces_of(documents);
    const auto held = rows_held(pieces);
    for (const std::int64_t window : {1, 2, 7, 40, 100}) {
      INFO(ranks << " ranks, a window of " << window);
      for (int position = 0; position < ranks; ++position) {
        std::vector<Row> expected;
        for (const Piece& piece : pieces[static_cast<std::size_t>(position)]) {
          const std::int64_t first =
              piece.rows == 0 ? piece.begin : std::max<std::int64_t>(0, piece.begin - window + 1);
          for (std::int64_t row = first; row < piece.begin; ++row) expected.emplace_back(piece.document, row);
        }
        const Halo halo = halo_of(pieces, position, window);
        std::vector<Row> found;
        for (const HaloRows& needed : halo.needed) {
          CHECK(needed.halo == std::ssize(found));
          for (std::int64_t i = 0; i < needed.rows; ++i) found.push_back(held.at({needed.owner, needed.held + i}));
        }
        CHECK(found == expected);
        CHECK(halo.rows == std::ssize(expected));
      }
    }
  }
}

TEST_CASE("queries see of their halo what is in their window, and of their own piece the rest", "[ring][halo]") {
  const ShardedDocuments documents({50, 9}, 3);
  const auto pieces = pieces_of(documents);
  const auto held = rows_held(pieces);
  for (const std::int64_t window : {2, 5, 30}) {
    for (int position = 0; position < 3; ++position) {
      const Halo halo = halo_of(pieces, position, window);
      std::vector<Row> rows;
      for (const HaloRows& needed : halo.needed) {
        for (std::int64_t i = 0; i < needed.rows; ++i) rows.push_back(held.at({needed.owner, needed.held + i}));
      }
      std::map<Row, std::set<std::int64_t>> seen;
      for (const AttentionBlock& block : halo.blocks) {
        for (std::int64_t query = 0; query < block.queries; ++query) {
          const KeyRange keys = seen_keys(block, query);
          for (std::int64_t key = keys.begin; key < keys.end; ++key) {
            const Row row = held.at({position, block.query_begin + query});
            const Row other = rows[static_cast<std::size_t>(block.key_begin + key)];
            CHECK(other.first == row.first);
            seen[row].insert(other.second);
          }
        }
      }
      for (const Piece& piece : pieces[static_cast<std::size_t>(position)]) {
        for (std::int64_t row = piece.begin; row < piece.begin + piece.rows; ++row) {
          std::set<std::int64_t> expected;
          for (std::int64_t key = std::max<std::int64_t>(0, row - window + 1); key < piece.begin; ++key) {
            expected.insert(key);
          }
          CHECK(seen[{piece.document, row}] == expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hdpsim::kernels
