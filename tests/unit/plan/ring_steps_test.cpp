#include "sim/plan/ring_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using TokenCounts = std::vector<std::int64_t>;

// Pairs of the queries of some pieces with the keys of others, query by query.
Int128 counted_one_by_one(const std::vector<CutPiece>& queries, const std::vector<CutPiece>& keys) {
  Int128 pairs = 0;
  for (const CutPiece& own : queries) {
    for (const CutPiece& other : keys) {
      if (own.document != other.document) continue;
      for (std::int64_t query = own.begin; query < own.end(); ++query) {
        pairs += std::clamp<std::int64_t>(query + 1 - other.begin, 0, other.tokens);
      }
    }
  }
  return pairs;
}

Int128 pairs_of(const RingStep& step) {
  Int128 pairs = 0;
  for (const std::int64_t tokens : step.own) pairs += tokens * (tokens + 1) / 2;
  for (const ForeignTile& tile : step.foreign) pairs += tile.pairs;
  return pairs;
}

void check_steps(const TokenCounts& lengths, std::int64_t ranks) {
  CAPTURE(lengths, ranks);
  const auto cut = make_group_cut(TokenCut::per_pack, lengths, ranks);
  const std::vector<RingStep> steps = ring_steps(*cut);
  REQUIRE(std::ssize(steps) == ranks);
  for (std::int64_t k = 0; k < ranks; ++k) {
    const RingStep& step = steps[static_cast<std::size_t>(k)];
    Int128 most = 0;
    Int128 all = 0;
    std::int64_t busiest = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const Int128 pairs = counted_one_by_one(pieces_of(*cut, rank), pieces_of(*cut, (rank - k + ranks) % ranks));
      if (pairs > most) busiest = rank;
      most = std::max(most, pairs);
      all += pairs;
    }
    CHECK(step.rank == busiest);
    CHECK((step.pairs == most));
    CHECK((step.all == all));
    CHECK((pairs_of(step) == most));
  }
}

// The same by piece: a piece sees all of an earlier one, and itself causally.
double pairs_between(const std::vector<CutPiece>& queries, const std::vector<CutPiece>& keys) {
  double pairs = 0;
  for (const CutPiece& own : queries) {
    for (const CutPiece& other : keys) {
      if (own.document != other.document || other.begin > own.begin) continue;
      const auto tokens = static_cast<double>(own.tokens);
      pairs += own == other ? tokens * (tokens + 1) / 2 : tokens * static_cast<double>(other.tokens);
    }
  }
  return pairs;
}

// By rank and step.
std::vector<std::vector<double>> tiles_of(const GroupCut& cut) {
  const auto ranks = static_cast<std::size_t>(cut.ranks());
  std::vector<std::vector<CutPiece>> pieces;
  for (std::int64_t rank = 0; rank < cut.ranks(); ++rank) pieces.push_back(pieces_of(cut, rank));
  std::vector<std::vector<double>> tiles(ranks, std::vector<double>(ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t k = 0; k < ranks; ++k) {
      tiles[rank][k] = pairs_between(pieces[rank], pieces[(rank + ranks - k) % ranks]);
    }
  }
  return tiles;
}

// When the last rank of a ring ends whose messages take no time: both sides of an exchange have to post it, each behind
// its exchange before and its kernel two steps before; a kernel waits for its keys.
double end_of_ring(const std::vector<std::vector<double>>& tiles) {
  const std::size_t ranks = tiles.size();
  std::vector<double> exchanged(ranks);
  std::vector<double> before(ranks);  // ends of the kernels of the step before the last
  std::vector<double> ended(ranks);
  for (std::size_t k = 0; k < ranks; ++k) {
    if (k > 0) {
      std::vector<double> posted(ranks);
      for (std::size_t r = 0; r < ranks; ++r) posted[r] = std::max(exchanged[r], before[r]);
      for (std::size_t r = 0; r < ranks; ++r) {
        exchanged[r] = std::max({posted[r], posted[(r + 1) % ranks], posted[(r + ranks - 1) % ranks]});
      }
    }
    before = ended;
    for (std::size_t r = 0; r < ranks; ++r) ended[r] = std::max(ended[r], exchanged[r]) + tiles[r][k];
  }
  return *std::max_element(ended.begin(), ended.end());
}

// A pack of 8,192 tokens a rank with as many tokens in every octave of lengths from 256 tokens to 2Mi.
TokenCounts one_long_document(RandomStream& random, std::int64_t ranks) {
  TokenCounts lengths;
  for (std::int64_t left = 8192 * ranks; left > 0; left -= lengths.back()) {
    const double tail = 1 - random.uniform() * (1 - 256.0 / (2 << 20));
    lengths.push_back(std::min<std::int64_t>(left, std::llround(256 / tail)));
  }
  return lengths;
}

}  // namespace

TEST_CASE("a ring without waits for messages takes no longer than its steps together, and an eighth less on average",
          "[plan][cut][ring]") {
  RandomStream random(12, "ring steps");
  std::vector<double> shares;
  for (const std::int64_t ranks : {4, 8, 16, 64}) {
    for (int pack = 0; pack < 20; ++pack) {
      const auto cut = make_group_cut(TokenCut::per_pack, one_long_document(random, ranks), ranks);
      double together = 0;
      for (const RingStep& step : ring_steps(*cut)) together += static_cast<double>(step.pairs);
      double busiest = 0;
      for (const RankWork& rank : cut->work()) busiest = std::max(busiest, static_cast<double>(rank.pairs));
      const double taken = end_of_ring(tiles_of(*cut));
      CHECK(taken >= busiest * (1 - 1e-12));
      CHECK(taken <= together * (1 + 1e-12));
      shares.push_back(taken / together);
    }
  }
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
  INFO("least " << *std::min_element(shares.begin(), shares.end()));
  CHECK(mean == Approx(0.875).margin(0.03));
}

TEST_CASE("every step of a ring over a pack takes what counting says of its busiest rank", "[plan][cut][ring]") {
  RandomStream random(11, "ring steps");
  for (int round = 0; round < 300; ++round) {
    TokenCounts lengths(1 + random.below(7));
    for (std::int64_t& length : lengths)
      length = static_cast<std::int64_t>(random.below(random.below(2) == 0 ? 5 : 70));
    check_steps(lengths, static_cast<std::int64_t>(1 + random.below(7)));
  }
}

TEST_CASE("one document on a ring: half a square a step, on every rank", "[plan][cut][ring]") {
  // Four ranks, 8 chunks of 10 tokens: 20 own tokens, then all queries with half of the keys or the other way round.
  const std::vector<RingStep> steps = ring_steps(*make_group_cut(TokenCut::per_pack, {80}, 4));
  CHECK(steps[0].pairs == 210);
  for (std::size_t k = 1; k < 4; ++k) {
    CHECK(steps[k].pairs == 200);
    CHECK(steps[k].all == 4 * 200);
  }
}

TEST_CASE("documents within chunks have no pairs with other ranks", "[plan][cut][ring]") {
  for (const RingStep& step : ring_steps(*make_group_cut(TokenCut::per_pack, TokenCounts(8, 10), 4))) {
    CHECK(step.pairs == (step.own.empty() ? 0 : 2 * 55));
  }
}

}  // namespace hdpsim
