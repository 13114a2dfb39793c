#include "sim/plan/group_cut.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using TokenCounts = std::vector<std::int64_t>;
using Token = std::pair<std::size_t, std::int64_t>;  // document, place in it

// The tokens of a rank one by one.
std::set<Token> tokens_held(const GroupCut& cut, std::int64_t rank) {
  std::set<Token> tokens;
  for (const CutPiece& piece : pieces_of(cut, rank)) {
    for (std::int64_t i = piece.begin; i < piece.end(); ++i) CHECK(tokens.emplace(piece.document, i).second);
  }
  return tokens;
}

// The same as GroupCut::work(), pair by pair.
RankWork counted(const std::set<Token>& tokens) {
  RankWork work;
  std::set<Token> seen;
  for (const auto& [document, place] : tokens) {
    for (std::int64_t key = 0; key <= place; ++key) seen.emplace(document, key);
    work.pairs += place + 1;
  }
  for (const Token& token : tokens) seen.erase(token);
  work.tokens = std::ssize(tokens);
  work.remote_keys = std::ssize(seen);
  return work;
}

TokenCounts random_lengths(RandomStream& random) {
  TokenCounts lengths(1 + random.below(6));
  for (std::int64_t& length : lengths) length = static_cast<std::int64_t>(random.below(random.below(2) == 0 ? 4 : 60));
  return lengths;
}

std::int64_t sum(const TokenCounts& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

constexpr std::array all_cuts = {TokenCut::per_document, TokenCut::per_pack, TokenCut::dispatch};

}  // namespace

TEST_CASE("every token has one rank, and its work is what counting each query and key says", "[plan][cut]") {
  RandomStream random(7, "cuts");
  for (int round = 0; round < 200; ++round) {
    const TokenCounts lengths = random_lengths(random);
    const auto ranks = static_cast<std::int64_t>(1 + random.below(6));
    for (const TokenCut kind : all_cuts) {
      CAPTURE(lengths, ranks, static_cast<int>(kind));
      const auto cut = make_group_cut(kind, lengths, ranks);
      const std::vector<RankWork> work = cut->work();
      REQUIRE(std::ssize(work) == ranks);
      std::int64_t tokens = 0;
      std::set<Token> all;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const std::set<Token> held = tokens_held(*cut, rank);
        CHECK((work[static_cast<std::size_t>(rank)] == counted(held)));
        tokens += std::ssize(held);
        all.insert(held.begin(), held.end());
      }
      CHECK(tokens == sum(lengths));
      CHECK(std::ssize(all) == tokens);
    }
  }
}

TEST_CASE("ranks of both static cuts hold equal numbers of tokens, within one", "[plan][cut]") {
  RandomStream random(8, "cuts");
  for (int round = 0; round < 100; ++round) {
    const TokenCounts lengths = random_lengths(random);
    const auto ranks = static_cast<std::int64_t>(1 + random.below(9));
    for (const TokenCut kind : {TokenCut::per_document, TokenCut::per_pack}) {
      const std::vector<RankWork> work = make_group_cut(kind, lengths, ranks)->work();
      const auto [least, most] = std::minmax_element(
          work.begin(), work.end(), [](const RankWork& a, const RankWork& b) { return a.tokens < b.tokens; });
      CHECK(most->tokens - least->tokens <= 1);
    }
  }
}

TEST_CASE("a document alone is cut alike as a document and as a pack", "[plan][cut]") {
  for (const std::int64_t tokens : {1, 7, 64, 1001}) {
    const auto document = make_group_cut(TokenCut::per_document, {tokens}, 4);
    const auto pack = make_group_cut(TokenCut::per_pack, {tokens}, 4);
    for (std::int64_t rank = 0; rank < 4; ++rank) CHECK(pieces_of(*document, rank) == pieces_of(*pack, rank));
  }
}

TEST_CASE("the remainder of a document goes on where that of the one before ended", "[plan][cut]") {
  // Two ranks, four parts. 5 tokens: one each and one more for part 0; 6 tokens: one each and one more for parts 1, 2.
  const auto cut = make_group_cut(TokenCut::per_document, {5, 6}, 2);
  CHECK(cut->pieces(0) == std::vector<CutPiece>{{0, 0, 2}, {1, 0, 1}});
  CHECK(cut->pieces(1) == std::vector<CutPiece>{{0, 2, 1}, {1, 1, 2}});
  CHECK(cut->pieces(2) == std::vector<CutPiece>{{0, 3, 1}, {1, 3, 2}});
  CHECK(cut->pieces(3) == std::vector<CutPiece>{{0, 4, 1}, {1, 5, 1}});
}

TEST_CASE("a pack of two equal documents on two ranks: one rank has both ends, the other both middles", "[plan][cut]") {
  // Four chunks of 4 tokens, two a document: 1 + 2 + 3 + 4 = 10 pairs in the first of a document, 5 + ... + 8 = 26 in
  // the second. Rank 0 has a first and a second, rank 1 as well. With documents of 4 and 12 they differ.
  const auto even = make_group_cut(TokenCut::per_pack, {8, 8}, 2)->work();
  CHECK(even[0].pairs == 36);
  CHECK(even[1].pairs == 36);
  const auto uneven = make_group_cut(TokenCut::per_pack, {4, 12}, 2)->work();
  CHECK(uneven[0].pairs == 10 + 42);  // all of the first document, and 9 + 10 + 11 + 12
  CHECK(uneven[1].pairs == 10 + 26);
}

TEST_CASE("dispatched chunks are an eighth of a rank's tokens, or as long as is said", "[plan][cut]") {
  CHECK(dispatch_cut({1000}, 5, 1 << 20)->pieces(0).front().tokens == 25);
  CHECK(dispatch_cut({1000}, 5, 10)->chunks() == 100);
  CHECK(dispatch_cut({1001}, 5, 10)->chunks() == 105);  // padded to 1050, a multiple of 50
  CHECK(dispatch_cut({1001}, 5, 10)->pieces(104).empty());
}

TEST_CASE("pairs of documents of 2^40 tokens are exact", "[plan][cut]") {
  const std::int64_t tokens = std::int64_t{1} << 40;
  for (const TokenCut kind : all_cuts) {
    Int128 pairs = 0;
    for (const RankWork& work : make_group_cut(kind, {tokens, tokens}, 3)->work()) pairs += work.pairs;
    CHECK((pairs == Int128{tokens} * (tokens + 1)));
  }
}

TEST_CASE("what cannot be cut is refused", "[plan][cut]") {
  CHECK_THROWS_AS(make_group_cut(TokenCut::per_pack, {4}, 0), CheckFailure);
  CHECK_THROWS_AS(make_group_cut(TokenCut::per_pack, {-4}, 1), CheckFailure);
  CHECK(make_group_cut(TokenCut::dispatch, {}, 2)->work() == std::vector<RankWork>(2));
}

}  // namespace hdpsim
