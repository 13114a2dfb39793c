#include "kernels/exec/share.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/sharing_form.h"
#include "sim/plan/held_pieces.h"

namespace hdpsim::kernels::exec {
namespace {

// The spans on a ring of parties. A party of consecutive ranks of a zigzag has consecutive parts on either side, so
// that parties are a zigzag, too.
ShardedDocuments documents_of(const MicroBatch& micro_batch, const GroupSharing& sharing) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(micro_batch.spans.size());
  for (const Span& span : micro_batch.spans) lengths.push_back(span.tokens);
  return {std::move(lengths), static_cast<int>(sharing.parties),
          [cuts = SpanCuts(micro_batch), inner = sharing.inner](std::size_t span, int part) {
            return cuts.part_begin(span, part * inner);
          }};
}

// The spans that the `index`-th rank of the group holds alone.
std::vector<Span> local_spans(const MicroBatch& micro_batch, std::size_t index) {
  const auto& all = micro_batch.local;
  const auto own = std::find_if(all.begin(), all.end(), [&](const LocalSpans& held) { return held.holder == index; });
  return own == all.end() ? std::vector<Span>{} : own->spans;
}

ShardedDocuments on_one_rank(const std::vector<Span>& spans) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(spans.size());
  for (const Span& span : spans) lengths.push_back(span.tokens);
  return {std::move(lengths), 1};
}

// The pieces of shared spans on the `index`-th rank of the group; `document` is the index of the span.
std::vector<Piece> pieces_on(const HeldPieces& held, std::size_t index) {
  std::vector<Piece> pieces;
  std::int64_t local = 0;
  for (const CutPiece& piece : held.of(index)) {
    pieces.push_back({static_cast<std::int64_t>(piece.document), piece.begin, piece.tokens,
                      std::exchange(local, local + piece.tokens)});
  }
  return pieces;
}

std::vector<int> members_of(const MicroBatch& micro_batch) {
  std::vector<int> members;
  members.reserve(micro_batch.group.size());
  for (const HdpRank member : micro_batch.group) members.push_back(static_cast<int>(member.index()));
  return members;
}

std::size_t place_in(const std::vector<HdpRank>& group, HdpRank rank) {
  const auto self = std::find(group.begin(), group.end(), rank);
  HDPSIM_CHECK(self != group.end(), "rank {} is not in the group", rank.index());
  return static_cast<std::size_t>(self - group.begin());
}

// The first row of every span where all spans follow each other.
std::vector<std::int64_t> first_rows(const MicroBatch& micro_batch) {
  std::vector<std::int64_t> first;
  std::int64_t rows = 0;
  for (const Span& span : micro_batch.spans) first.push_back(std::exchange(rows, rows + span.tokens));
  return first;
}

GroupRows gathered_rows(const MicroBatch& micro_batch, const HeldPieces& held_pieces, std::size_t self) {
  const std::vector<std::int64_t> first = first_rows(micro_batch);
  GroupRows together{.members = members_of(micro_batch), .position = static_cast<int>(self), .held = {}};
  for (std::size_t index = 0; index < micro_batch.group.size(); ++index) {
    std::vector<RowRange>& held = together.held.emplace_back();
    for (const Piece& piece : pieces_on(held_pieces, index)) {
      if (piece.rows == 0) continue;
      held.push_back({piece.local_begin, first[static_cast<std::size_t>(piece.document)] + piece.begin, piece.rows});
    }
  }
  return together;
}

// The i-th launch has the i-th piece of every span, and all keys before its end.
GatheredKeys::Launches launches_of(const MicroBatch& micro_batch, const std::vector<Piece>& pieces) {
  const std::vector<std::int64_t> first = first_rows(micro_batch);
  GatheredKeys::Launches launches;
  std::vector<std::size_t> seen(first.size());
  for (const Piece& piece : pieces) {
    if (piece.rows == 0) continue;
    const auto document = static_cast<std::size_t>(piece.document);
    const std::size_t launch = seen[document]++;
    if (launch == launches.size()) launches.emplace_back();
    launches[launch].push_back({.query_begin = piece.local_begin,
                                .queries = piece.rows,
                                .key_begin = first[document],
                                .keys = piece.begin + piece.rows,
                                .mask = Mask::causal});
  }
  return launches;
}

// A rank's pieces lie in those of its party, piece by piece.
GroupRows party_rows(const MicroBatch& micro_batch, const HeldPieces& held_pieces, const GroupSharing& sharing,
                     std::size_t self) {
  const auto inner = static_cast<std::size_t>(sharing.inner);
  const std::size_t party = self / inner;
  const std::vector<Piece> whole = documents_of(micro_batch, sharing).pieces(static_cast<int>(party));
  const std::vector<int> all = members_of(micro_batch);
  GroupRows together{.members = {}, .position = static_cast<int>(self % inner), .held = {}};
  for (std::size_t index = party * inner; index < (party + 1) * inner; ++index) {
    together.members.push_back(all[index]);
    const std::vector<Piece> pieces = pieces_on(held_pieces, index);
    std::vector<RowRange>& held = together.held.emplace_back();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].rows == 0) continue;
      held.push_back({pieces[i].local_begin, whole[i].local_begin + pieces[i].begin - whole[i].begin, pieces[i].rows});
    }
  }
  return together;
}

// The ranks in the same place of every party.
std::vector<int> ring_members(const MicroBatch& micro_batch, const GroupSharing& sharing, std::size_t self) {
  const std::vector<int> all = members_of(micro_batch);
  const auto inner = static_cast<std::size_t>(sharing.inner);
  std::vector<int> members;
  for (std::size_t index = self % inner; index < all.size(); index += inner) members.push_back(all[index]);
  return members;
}

// Appends the rows of tokens [begin, begin + rows) of a sequence.
void append_rows(Share& share, const Plan& plan, const Span& span, std::int64_t begin, std::int64_t rows,
                 const TokenSource& tokens) {
  const std::int64_t left = plan.sequence_tokens[span.sequence.index()] - begin;
  const bool has_next = left > rows;
  std::vector<std::int32_t> read(static_cast<std::size_t>(has_next ? rows + 1 : rows));
  tokens.read(plan.step, static_cast<std::int64_t>(span.sequence.index()), begin, read);
  share.ids.insert(share.ids.end(), read.begin(), read.begin() + rows);
  share.targets.insert(share.targets.end(), read.begin() + 1, read.end());
  if (!has_next) share.targets.push_back(-1);
  const auto first = static_cast<std::ptrdiff_t>(share.positions.size());
  share.positions.resize(share.positions.size() + static_cast<std::size_t>(rows));
  std::iota(share.positions.begin() + first, share.positions.end(), static_cast<std::int32_t>(begin));
}

}  // namespace

Share share_of(const Plan& plan, MicroBatchId id, int rank, const TokenSource& tokens, const GroupSharing& sharing) {
  const MicroBatch& micro_batch = plan.micro_batches.at(id.index());
  const std::size_t self = place_in(micro_batch.group, HdpRank(static_cast<std::size_t>(rank)));
  const HeldPieces held(micro_batch);
  const std::vector<Piece> pieces = pieces_on(held, self);
  const std::vector<Span> local = local_spans(micro_batch, self);
  Share share{.sharing = sharing,
              .documents = documents_of(micro_batch, sharing),
              .members = ring_members(micro_batch, sharing, self),
              .position = static_cast<int>(self) / static_cast<int>(sharing.inner),
              .together = {},
              .launches = {},
              .cut = documents_of(micro_batch, {.parties = std::ssize(micro_batch.group)}),
              .group = members_of(micro_batch),
              .place = static_cast<int>(self),
              .local = on_one_rank(local),
              .self = {rank},
              .ids = {},
              .targets = {},
              .positions = {}};
  if (sharing.inner > 1) {
    share.together = party_rows(micro_batch, held, sharing, self);
  } else if (sharing.parties > 1 && form_of(sharing).hops(sharing) == 0) {  // what no ring joins is gathered
    share.together = gathered_rows(micro_batch, held, self);
    share.launches = launches_of(micro_batch, pieces);
  }
  for (const Piece& piece : pieces) {
    const Span& span = micro_batch.spans[static_cast<std::size_t>(piece.document)];
    if (piece.rows > 0) append_rows(share, plan, span, span.begin + piece.begin, piece.rows, tokens);
  }
  for (const Span& span : local) append_rows(share, plan, span, span.begin, span.tokens, tokens);
  return share;
}

std::int64_t rows_of(const MicroBatch& micro_batch, HdpRank rank) {
  const std::size_t place = place_in(micro_batch.group, rank);
  std::int64_t rows = on_one_rank(local_spans(micro_batch, place)).rows(0);
  for (const Piece& piece : pieces_on(HeldPieces(micro_batch), place)) rows += piece.rows;
  return rows;
}

std::int64_t target_count(const Plan& plan) {
  std::int64_t count = 0;
  for (const std::int64_t tokens : plan.sequence_tokens) count += tokens - 1;
  return count;
}

}  // namespace hdpsim::kernels::exec
