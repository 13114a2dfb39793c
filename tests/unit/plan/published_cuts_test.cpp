// Cuts that other systems' own code made of packs drawn for the purpose: published/wlb-cuts.json, magi-dispatch.json.

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "sim/plan/group_cut.h"
#include "tests/unit/plan/published_cases.h"

namespace hdpsim {
namespace {

double most_over_mean(const std::vector<RankWork>& work) {
  double most = 0;
  double sum = 0;
  for (const RankWork& rank : work) {
    most = std::max(most, static_cast<double>(rank.pairs));
    sum += static_cast<double>(rank.pairs);
  }
  return most * static_cast<double>(work.size()) / sum;
}

std::vector<std::int64_t> begins_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> begins{0};
  for (const std::int64_t length : lengths) begins.push_back(begins.back() + length);
  return begins;
}

void check_chunk(const std::vector<CutPiece>& pieces, const std::vector<std::int64_t>& begins, const Value& queries,
                 const Value& keys) {
  std::vector<std::int64_t> own_queries;
  std::vector<std::int64_t> own_keys;
  for (const CutPiece& piece : pieces) {
    own_queries.push_back(piece.tokens);
    own_keys.push_back(begins[piece.document]);
    own_keys.push_back(begins[piece.document] + piece.end());
  }
  CHECK(own_queries == numbers(queries));
  CHECK(own_keys == numbers(keys));
}

void check_zigzag(TokenCut kind, const Value& one, const Value& of_ranks, const Value& most) {
  const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
  const auto cut = make_group_cut(kind, lengths, number(*one.find("ranks")));
  const std::vector<RankWork> work = cut->work();
  REQUIRE(work.size() == of_ranks.items.size());
  for (std::size_t rank = 0; rank < work.size(); ++rank) {
    const std::vector<Value>& published = of_ranks.items[rank].items;
    const std::vector<std::int64_t> chunks = cut->chunks_of(static_cast<std::int64_t>(rank));
    REQUIRE(chunks.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      check_chunk(cut->pieces(chunks[i]), begins_of(lengths), published[0].items[i], published[1].items[i]);
    }
    CHECK(static_cast<std::int64_t>(2 * work[rank].pairs) == number(published[2]));
  }
  CHECK(fmt::format("{:.12f}", most_over_mean(work)) == fmt::format("{:.12f}", std::stod(most.text)));
}

void check_dispatch(const Value& one) {
  const std::int64_t given = number(*one.find("most_tokens"));
  const std::int64_t most = given > 0 ? given : std::numeric_limits<std::int64_t>::max();
  const auto cut = dispatch_cut(numbers(*one.find("lengths")), number(*one.find("ranks")), most);
  std::vector<std::int64_t> pairs;
  for (std::int64_t chunk = 0; chunk < cut->chunks(); ++chunk) {
    Int128 of_chunk = 0;
    for (const CutPiece& piece : cut->pieces(chunk)) of_chunk += piece.pairs();
    pairs.push_back(static_cast<std::int64_t>(of_chunk));
  }
  CHECK(pairs == numbers(*one.find("chunk_pairs")));
  const std::vector<RankWork> work = cut->work();
  std::int64_t tokens = 0;
  std::vector<std::int64_t> of_ranks;
  std::vector<std::int64_t> remote;
  for (std::size_t rank = 0; rank < work.size(); ++rank) {
    CHECK(cut->chunks_of(static_cast<std::int64_t>(rank)) == numbers(one.find("chunks")->items.at(rank)));
    of_ranks.push_back(static_cast<std::int64_t>(work[rank].pairs));
    remote.push_back(work[rank].remote_keys);
    tokens += work[rank].tokens;
  }
  CHECK(of_ranks == numbers(*one.find("pairs")));
  CHECK(remote == numbers(*one.find("remote_keys")));
  CHECK(cut->chunks() * number(*one.find("chunk_tokens")) - tokens == number(*one.find("padding")));
  CHECK(fmt::format("{:.12f}", most_over_mean(work)) ==
        fmt::format("{:.12f}", std::stod(one.find("max_over_mean")->text)));
}

}  // namespace

TEST_CASE("documents and packs are cut as WLB-LLM's own code cuts them", "[plan][cut][published]") {
  for (const Value& one : cases_of("wlb-cuts")) {
    INFO("case " << one.find("case")->text);
    check_zigzag(TokenCut::per_document, one, *one.find("per_document"), *one.find("per_document_max_over_mean"));
    check_zigzag(TokenCut::per_pack, one, *one.find("per_pack"), *one.find("per_pack_max_over_mean"));
  }
}

TEST_CASE("chunks are dispatched as MagiAttention's own code dispatches them", "[plan][cut][published]") {
  for (const Value& one : cases_of("magi-dispatch")) {
    INFO("case " << one.find("case")->text);
    check_dispatch(one);
  }
}

}  // namespace hdpsim
