#include <algorithm>
#include <numeric>

#include "sim/plan/impl/attention_servers.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/served_cut.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using TokenCounts = std::vector<std::int64_t>;

MicroBatch pack_of(const TokenCounts& lengths, const ServerRules& rules) {
  MicroBatch micro_batch;
  micro_batch.cut = TokenCut::served;
  for (std::int64_t rank = 0; rank < rules.ranks; ++rank)
    micro_batch.group.emplace_back(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < lengths.size(); ++i) micro_batch.spans.push_back({SequenceId(i), 0, lengths[i]});
  micro_batch.moved = queries_to_move(lengths, rules);
  return micro_batch;
}

std::vector<double> pairs_by_rank(const ServedHalf& half) {
  std::vector<double> sums;
  for (const std::vector<CutPiece>& pieces : half.attended) {
    sums.push_back(0);
    for (const CutPiece& piece : pieces) sums.back() += static_cast<double>(piece.pairs());
  }
  return sums;
}

TEST_CASE("distca: no rank attends to more than the mean and the tolerance, but for a tile", "[plan][distca]") {
  const TokenCounts lengths = {100'000, 30'000, 8'000, 4'000, 4'000, 2'000, 90'000, 9'000, 9'000, 6'000};
  for (const double tolerance : {0.0, 0.1, 0.5}) {
    const ServerRules rules{8, 4096, 1024, tolerance, 128};
    for (const ServedHalf& half : served_halves(pack_of(lengths, rules))) {
      const std::vector<double> pairs = pairs_by_rank(half);
      const double mean = std::accumulate(pairs.begin(), pairs.end(), 0.0) / static_cast<double>(pairs.size());
      const double tile = 128.0 * 100'000;  // the pairs of one, where they are most
      CHECK(*std::max_element(pairs.begin(), pairs.end()) <= mean * (1 + tolerance) + 2 * tile);
    }
  }
}

TEST_CASE("distca: what moves is the less, the more a rank may attend to", "[plan][distca]") {
  const TokenCounts lengths = {100'000, 30'000, 8'000, 4'000, 4'000, 2'000};
  const auto moved = [&](double tolerance) {
    std::int64_t queries = 0;
    for (const ServedQueries& each : queries_to_move(lengths, {4, 4096, 1024, tolerance, 128})) queries += each.tokens;
    return queries;
  };
  CHECK(moved(0) > moved(0.3));
  CHECK(moved(0.3) > 0);
  CHECK(moved(1000) == 0);
}

TEST_CASE("distca: queries that cost fewer bytes a pair move first", "[plan][distca]") {
  // Ranks of 1,024 tokens a half. In the first half rank 0 has one document, rank 1 eight of 128: rank 1 gets the last
  // queries of the document, which see most keys, if queries cost more than keys do, and its first ones otherwise.
  TokenCounts lengths{1024};
  lengths.insert(lengths.end(), 24, 128);
  const auto moves_last = [&](std::int64_t query_bytes, std::int64_t key_bytes) {
    const auto moved = queries_to_move(lengths, {2, query_bytes, key_bytes, 0, 128});
    REQUIRE(!moved.empty());
    CHECK(std::all_of(moved.begin(), moved.end(), [](const auto& q) { return q.span == 0 && q.server == 1; }));
    return moved.back().end() == 1024;
  };
  CHECK(moves_last(4096, 1));
  CHECK_FALSE(moves_last(1, 4096));
}

TEST_CASE("distca: ranks hold equal numbers of tokens, whatever the documents", "[plan][distca]") {
  PlanningContext context = small_pool(4);
  context.context = 350;
  context.served_bytes = {4, 1};
  const Plan plan = plan_of("distca", context, {350, 20, 30, 200, 40, 60, 90, 10});  // 800 tokens, 400 fit
  CHECK(check_plan(plan).empty());
  REQUIRE(plan.micro_batches.size() == 2);
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    CHECK(micro_batch.cut == TokenCut::served);
    CHECK(micro_batch.tokens() == 400);
    for (const RankWork& rank : group_cut_of(micro_batch)->work()) CHECK(rank.tokens == 100);
  }
}

TEST_CASE("distca as in its code: documents stay in the order of the data, and a rank gives from its middle",
          "[plan][distca]") {
  PlanningContext context = small_pool(2);
  context.context = 200;
  context.served_bytes = {4, 1};
  // Two halves of two parts of 50. The document of 100 fills the first half: rank 0 has its first 50 tokens with 1,275
  // pairs, rank 1 the others with 3,775. Rank 0 lacks 1,250. Two queries of rank 1 at equal distances from token 75
  // have 151 pairs together, so that it gives 8 on either side.
  const Plan plan = plan_of("distca: {as: code}", context, {100, 20, 20, 20, 40, 200});
  REQUIRE(plan.micro_batches.size() == 2);
  const MicroBatch& first = plan.micro_batches[0];
  CHECK(sequences_of(first) == Indices{0, 1, 2, 3, 4});
  REQUIRE(!first.moved.empty());
  CHECK(first.moved[0].span == 0);
  CHECK(first.moved[0].server == 0);
  const std::int64_t queries = 1250 / 151;
  CHECK(first.moved[0].begin == 75 - queries);
  CHECK(first.moved[0].tokens == queries);
}

TEST_CASE("distca: groups of servers take packs in turn", "[plan][distca]") {
  PlanningContext context = small_pool(4);
  context.context = 150;
  context.served_bytes = {4, 1};
  const Plan plan = plan_of("distca: {servers: 2}", context, {150, 150, 150, 150});
  CHECK(check_plan(plan).empty());
  REQUIRE(plan.micro_batches.size() == 4);
  CHECK(ranks_of(plan.micro_batches[0]) == Indices{0, 1});
  CHECK(ranks_of(plan.micro_batches[1]) == Indices{2, 3});
  CHECK(plan.schedule[0].size() == 2);
}

}  // namespace
}  // namespace hdpsim
