// Attention servers: what ranks of a group hold, attend to and send, against counting token by token.

#include "sim/plan/served_cut.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

MicroBatch served(const std::vector<std::int64_t>& lengths, std::int64_t ranks, std::vector<ServedQueries> moved = {}) {
  MicroBatch micro_batch;
  micro_batch.cut = TokenCut::served;
  micro_batch.moved = std::move(moved);
  for (std::int64_t rank = 0; rank < ranks; ++rank) micro_batch.group.emplace_back(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < lengths.size(); ++i) micro_batch.spans.push_back({SequenceId(i), 0, lengths[i]});
  return micro_batch;
}

std::int64_t pairs(const std::vector<CutPiece>& pieces) {
  std::int64_t sum = 0;
  for (const CutPiece& piece : pieces) sum += static_cast<std::int64_t>(piece.pairs());
  return sum;
}

TEST_CASE("rank r of N holds parts r and N + r of a served pack, and attends to its own queries", "[cut][served]") {
  // 12 tokens in four parts: 0-2 and 3-5 of the first document, then 6-8, then 9 and the second document.
  const auto halves = served_halves(served({10, 2}, 2));
  CHECK(halves[0].attended == std::vector<std::vector<CutPiece>>{{{0, 0, 3}}, {{0, 3, 3}}});
  CHECK(halves[1].attended == std::vector<std::vector<CutPiece>>{{{0, 6, 3}}, {{0, 9, 1}, {1, 0, 2}}});
  CHECK((halves[0].queries == 0 && halves[1].queries == 0));
  CHECK(halves[0].keys == 3);  // rank 1 sees those of rank 0
  CHECK(halves[1].keys == 6);  // rank 1 sees 0-2 and 6-8 of rank 0
}

TEST_CASE("moved queries are attended to by their server, which gets the keys before them", "[cut][served]") {
  const auto halves = served_halves(served({10, 2}, 2, {{0, 4, 2, 0}}));
  CHECK(halves[0].attended == std::vector<std::vector<CutPiece>>{{{0, 0, 3}, {0, 4, 2}}, {{0, 3, 1}}});
  CHECK(pairs(halves[0].attended[0]) == 6 + 5 + 6);
  CHECK(halves[0].queries == 2);
  CHECK(halves[0].keys == 3);
  const auto work = group_cut_of(served({10, 2}, 2, {{0, 4, 2, 0}}))->work();
  CHECK(work[0].pairs == 6 + 5 + 6 + 7 + 8 + 9);
  CHECK(work[1].pairs == 4 + 10 + 1 + 2);
  CHECK((work[0].tokens == 6 && work[1].tokens == 6));
}

/// A token of the pack.
struct ServedToken {
  std::size_t document = 0;
  std::int64_t place = 0;
  std::int64_t holder = 0;
  std::int64_t server = 0;
  std::size_t half = 0;
};

std::vector<ServedToken> served_tokens(const MicroBatch& micro_batch) {
  const std::int64_t ranks = std::ssize(micro_batch.group);
  const std::int64_t all = micro_batch.tokens();
  std::vector<ServedToken> tokens;
  for (std::size_t document = 0; document < micro_batch.spans.size(); ++document) {
    for (std::int64_t place = 0; place < micro_batch.spans[document].tokens; ++place) {
      tokens.push_back({document, place, 0, 0, 0});
    }
  }
  std::int64_t next = 0;
  for (std::int64_t part = 0; part < 2 * ranks; ++part) {
    const std::int64_t size = all / (2 * ranks) + (part < all % (2 * ranks) ? 1 : 0);
    for (std::int64_t i = 0; i < size; ++i, ++next) {
      ServedToken& token = tokens[static_cast<std::size_t>(next)];
      token.holder = token.server = part % ranks;
      token.half = part < ranks ? 0 : 1;
    }
  }
  for (ServedToken& token : tokens) {
    for (const ServedQueries& queries : micro_batch.moved) {
      const bool is_of_them =
          queries.span == token.document && token.place >= queries.begin && token.place < queries.end();
      if (is_of_them) token.server = static_cast<std::int64_t>(queries.server);
    }
  }
  return tokens;
}

void compare_half(const std::vector<ServedToken>& tokens, std::size_t half, const ServedHalf& found) {
  const auto ranks = found.attended.size();
  std::vector<std::int64_t> attended(ranks), queries_in(ranks), queries_out(ranks), keys_in(ranks), keys_out(ranks);
  std::vector<std::set<std::size_t>> needed(ranks);  // tokens whose keys a server needs
  for (std::size_t query = 0; query < tokens.size(); ++query) {
    const ServedToken& token = tokens[query];
    if (token.half != half) continue;
    const auto server = static_cast<std::size_t>(token.server);
    attended[server] += token.place + 1;
    if (token.server != token.holder) {
      ++queries_in[server];
      ++queries_out[static_cast<std::size_t>(token.holder)];
    }
    for (std::size_t key = query - static_cast<std::size_t>(token.place); key <= query; ++key)
      needed[server].insert(key);
  }
  for (std::size_t server = 0; server < ranks; ++server) {
    CHECK(pairs(found.attended[server]) == attended[server]);
    for (const std::size_t key : needed[server]) {
      const auto holder = static_cast<std::size_t>(tokens[key].holder);
      if (holder == server) continue;
      ++keys_in[server];
      ++keys_out[holder];
    }
  }
  const auto most = [](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    return std::max(*std::max_element(a.begin(), a.end()), *std::max_element(b.begin(), b.end()));
  };
  CHECK(found.received_keys == keys_in);
  CHECK(found.queries == most(queries_in, queries_out));
  CHECK(found.keys == most(keys_in, keys_out));
}

TEST_CASE("pairs, queries and keys of served packs are those that counting tokens finds", "[cut][served]") {
  for (const std::uint64_t seed : tests::seeds(150)) {
    INFO("replay: HDPSIM_SEED=" << seed);
    RandomStream random(seed, "served packs");
    const auto below = [&](std::uint64_t count) { return static_cast<std::int64_t>(random.below(count)); };
    const std::int64_t ranks = 2 + below(5);
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 1 + below(6); i > 0; --i) lengths.push_back(1 + below(30));
    std::vector<ServedQueries> moved;
    for (std::size_t document = 0; document < lengths.size(); ++document) {
      for (std::int64_t at = below(12); at < lengths[document]; at += 1 + below(12)) {
        const std::int64_t tokens = std::min(1 + below(9), lengths[document] - at);
        moved.push_back({document, at, tokens, static_cast<std::size_t>(below(static_cast<std::uint64_t>(ranks)))});
        at += tokens;
      }
    }
    const MicroBatch micro_batch = served(lengths, ranks, moved);
    const auto halves = served_halves(micro_batch);
    const std::vector<ServedToken> tokens = served_tokens(micro_batch);
    for (std::size_t half = 0; half < halves.size(); ++half) compare_half(tokens, half, halves[half]);
  }
}

}  // namespace
}  // namespace hdpsim
