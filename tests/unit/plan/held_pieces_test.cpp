#include "sim/plan/held_pieces.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

MicroBatch shared(std::size_t ranks, const std::vector<std::int64_t>& lengths, TokenCut cut = TokenCut::per_document) {
  MicroBatch micro_batch{.group = {}, .spans = {}, .cut = cut};
  for (std::size_t rank = 0; rank < ranks; ++rank) micro_batch.group.emplace_back(rank);
  for (const std::int64_t tokens : lengths)
    micro_batch.spans.push_back({SequenceId(micro_batch.spans.size()), 5, tokens});
  return micro_batch;
}

std::vector<std::vector<int>> times_held(const MicroBatch& micro_batch) {
  std::vector<std::vector<int>> times;
  for (const Span& span : micro_batch.spans) times.emplace_back(static_cast<std::size_t>(span.tokens));
  const HeldPieces held(micro_batch);
  for (std::size_t index = 0; index < micro_batch.group.size(); ++index) {
    for (const CutPiece& piece : joined(held.of(index))) {
      REQUIRE(piece.tokens > 0);
      for (std::int64_t token = piece.begin; token < piece.end(); ++token) {
        ++times.at(piece.document).at(static_cast<std::size_t>(token));
      }
    }
  }
  return times;
}

}  // namespace

TEST_CASE("per document a rank holds the parts of parts_of", "[plan][held]") {
  const MicroBatch micro_batch = shared(3, {20, 7, 1, 100});
  const HeldPieces held(micro_batch);
  for (std::size_t index = 0; index < 3; ++index) {
    const std::vector<CutPiece> pieces = held.of(index);
    const std::vector<Part> parts = parts_of(micro_batch, index);
    REQUIRE(pieces.size() == parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(parts[i] == Part{SequenceId(pieces[i].document), 5 + pieces[i].begin, pieces[i].tokens});
    }
  }
}

TEST_CASE("whatever the cut, each token of the group is held by one rank", "[plan][held]") {
  RandomStream random(7, "held pieces");
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> lengths;
    for (int i = 0; i < 4; ++i) lengths.push_back(1 + static_cast<std::int64_t>(random.uniform() * 50));
    const auto ranks = static_cast<std::size_t>(1 + round % 5);
    for (const TokenCut cut : {TokenCut::per_document, TokenCut::per_pack, TokenCut::dispatch, TokenCut::served}) {
      CAPTURE(round, ranks, static_cast<int>(cut));
      for (const std::vector<int>& times : times_held(shared(ranks, lengths, cut))) {
        CHECK(std::all_of(times.begin(), times.end(), [](int count) { return count == 1; }));
      }
    }
  }
}

TEST_CASE("joined pieces of a rank alone are its spans, and those of the last rank of a ring the middle of each",
          "[plan][held]") {
  const MicroBatch alone = shared(1, {20, 7});
  CHECK(joined(HeldPieces(alone).of(0)) == std::vector<CutPiece>{{0, 0, 20}, {1, 0, 7}});
  const MicroBatch ring = shared(2, {20});  // four parts of 5
  CHECK(joined(HeldPieces(ring).of(0)) == std::vector<CutPiece>{{0, 0, 5}, {0, 15, 5}});
  CHECK(joined(HeldPieces(ring).of(1)) == std::vector<CutPiece>{{0, 5, 10}});
}

TEST_CASE("queries that move are told with the ranks that hold them", "[plan][held]") {
  MicroBatch micro_batch = shared(2, {40}, TokenCut::served);  // parts of 10: ranks 0, 1, 0, 1
  micro_batch.moved = {{0, 5, 3, 1}, {0, 18, 4, 0}};
  CHECK(moved_by_holder(micro_batch) ==
        std::vector<HeldQueries>{{{0, 5, 3, 1}, 0}, {{0, 18, 2, 0}, 1}, {{0, 20, 2, 0}, 0}});
}

}  // namespace hdpsim
