#include "sim/plan/group_cut.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/base/check.h"
#include "sim/plan/impl/group_cuts.h"

namespace hdpsim {
namespace {

bool precedes(const CutPiece& a, const CutPiece& b) {
  return std::tie(a.document, a.begin) < std::tie(b.document, b.begin);
}

RankWork rank_work(const std::vector<CutPiece>& pieces) {
  RankWork work;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    work.pairs += pieces[i].pairs();
    work.tokens += pieces[i].tokens;
    const bool is_last = i + 1 == pieces.size() || pieces[i + 1].document != pieces[i].document;
    if (is_last) work.remote_keys += pieces[i].end();
  }
  work.remote_keys -= work.tokens;
  return work;
}

}  // namespace

std::unique_ptr<GroupCut> make_group_cut(TokenCut cut, const std::vector<std::int64_t>& lengths, std::int64_t ranks,
                                         const std::vector<ServedQueries>& moved) {
  HDPSIM_CHECK(ranks >= 1, "documents cut over {} ranks", ranks);
  for (const std::int64_t length : lengths) HDPSIM_CHECK(length >= 0, "a document of {} tokens", length);
  switch (cut) {
    case TokenCut::per_document:
      return per_document_cut(lengths, ranks);
    case TokenCut::per_pack:
      return per_pack_cut(lengths, ranks);
    case TokenCut::dispatch:
      return dispatch_cut(lengths, ranks, std::numeric_limits<std::int64_t>::max());
    case TokenCut::served:
      return served_cut(lengths, ranks, moved);
  }
  HDPSIM_CHECK(false, "cut {} is unknown", static_cast<int>(cut));
}

std::vector<std::int64_t> span_lengths(const MicroBatch& micro_batch) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(micro_batch.spans.size() + 1);  // group_cut_of() adds the padding
  for (const Span& span : micro_batch.spans) lengths.push_back(span.tokens);
  return lengths;
}

std::unique_ptr<GroupCut> group_cut_of(const MicroBatch& micro_batch) {
  std::vector<std::int64_t> lengths = span_lengths(micro_batch);
  if (micro_batch.padding > 0) lengths.push_back(micro_batch.padding);
  return make_group_cut(micro_batch.cut, lengths, std::ssize(micro_batch.group), micro_batch.moved);
}

bool is_uneven(const MicroBatch& micro_batch) {
  if (micro_batch.group.size() == 1 || micro_batch.cut == TokenCut::per_document) return false;
  const std::size_t documents = micro_batch.spans.size() + (micro_batch.padding > 0 ? 1 : 0);
  return micro_batch.cut != TokenCut::per_pack || documents > 1;  // the pack of one document is a document
}

double area_of_busiest(const MicroBatch& micro_batch) {
  if (!is_uneven(micro_batch)) return micro_batch.shared_area();
  Int128 most = 0;
  for (const RankWork& rank : group_cut_of(micro_batch)->work()) most = std::max(most, rank.pairs);
  return static_cast<double>(most) * static_cast<double>(micro_batch.group.size());
}

std::vector<CutPiece> pieces_of(const GroupCut& cut, std::int64_t rank) {
  std::vector<std::int64_t> chunks = cut.chunks_of(rank);
  std::sort(chunks.begin(), chunks.end());
  std::vector<CutPiece> all;
  for (const std::int64_t chunk : chunks) {
    const std::vector<CutPiece> pieces = cut.pieces(chunk);
    const auto known = std::ssize(all);
    all.insert(all.end(), pieces.begin(), pieces.end());
    const auto added = all.begin() + known;
    const bool follows = known == 0 || pieces.empty() || precedes(*(added - 1), *added);
    if (!follows) std::inplace_merge(all.begin(), added, all.end(), precedes);
  }
  return all;
}

std::vector<RankWork> GroupCut::work() const {
  std::vector<RankWork> all;
  all.reserve(static_cast<std::size_t>(ranks()));
  for (std::int64_t rank = 0; rank < ranks(); ++rank) all.push_back(rank_work(pieces_of(*this, rank)));
  return all;
}

}  // namespace hdpsim
