#include "kernels/exec/share.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

ShardedDocuments documents_of(const MicroBatch& micro_batch) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(micro_batch.spans.size());
  for (const Span& span : micro_batch.spans) lengths.push_back(span.tokens);
  return {std::move(lengths), static_cast<int>(micro_batch.group.size()),
          [cuts = SpanCuts(micro_batch)](std::size_t span, int part) { return cuts.part_begin(span, part); }};
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

Share share_of(const Plan& plan, MicroBatchId id, int rank, const TokenSource& tokens) {
  const MicroBatch& micro_batch = plan.micro_batches.at(id.index());
  Share share{.documents = documents_of(micro_batch), .members = {}, .ids = {}, .targets = {}, .positions = {}};
  for (const HdpRank member : micro_batch.group) share.members.push_back(static_cast<int>(member.index()));
  const auto self = std::find(share.members.begin(), share.members.end(), rank);
  HDPSIM_CHECK(self != share.members.end(), "rank {} has no part in micro-batch {}", rank, id.index());
  share.position = static_cast<int>(self - share.members.begin());
  for (const Piece& piece : share.documents.pieces(share.position)) {
    const Span& span = micro_batch.spans[static_cast<std::size_t>(piece.document)];
    if (piece.rows > 0) append_rows(share, plan, span, span.begin + piece.begin, piece.rows, tokens);
  }
  return share;
}

std::int64_t rows_of(const MicroBatch& micro_batch, HdpRank rank) {
  const auto self = std::find(micro_batch.group.begin(), micro_batch.group.end(), rank);
  HDPSIM_CHECK(self != micro_batch.group.end(), "rank {} is not in the group", rank.index());
  std::int64_t rows = 0;
  for (const Part& part : parts_of(micro_batch, static_cast<std::size_t>(self - micro_batch.group.begin()))) {
    rows += part.tokens;
  }
  return rows;
}

std::int64_t target_count(const Plan& plan) {
  std::int64_t count = 0;
  for (const std::int64_t tokens : plan.sequence_tokens) count += tokens - 1;
  return count;
}

}  // namespace hdpsim::kernels::exec
