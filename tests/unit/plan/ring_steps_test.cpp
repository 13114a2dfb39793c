#include "sim/plan/ring_steps.h"

#include <algorithm>
#include <numeric>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Lengths = std::vector<std::int64_t>;

// Pairs of the queries of some pieces with the keys of others, query by query.
Int128 counted(const std::vector<CutPiece>& queries, const std::vector<CutPiece>& keys) {
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

void check_steps(const Lengths& lengths, std::int64_t ranks) {
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
      const Int128 pairs = counted(pieces_of(*cut, rank), pieces_of(*cut, (rank - k + ranks) % ranks));
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

}  // namespace

TEST_CASE("every step of a ring over a pack takes what counting says of its busiest rank", "[plan][cut][ring]") {
  RandomStream random(11, "ring steps");
  for (int round = 0; round < 300; ++round) {
    Lengths lengths(1 + random.below(7));
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
  for (const RingStep& step : ring_steps(*make_group_cut(TokenCut::per_pack, Lengths(8, 10), 4))) {
    CHECK(step.pairs == (step.own.empty() ? 0 : 2 * 55));
  }
}

}  // namespace hdpsim
