#include "sim/plan/held_pieces.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {

HeldPieces::HeldPieces(const MicroBatch& micro_batch)
    : micro_batch_(micro_batch),
      spans_(micro_batch),
      uneven_(is_uneven(micro_batch) ? group_cut_of(micro_batch) : nullptr) {}

std::vector<CutPiece> HeldPieces::of(std::size_t index) const {
  const auto rank = static_cast<std::int64_t>(index);
  HDPSIM_CHECK(index < micro_batch_.group.size(), "rank {} of a group of {}", index, micro_batch_.group.size());
  if (uneven_ != nullptr) return pieces_of(*uneven_, rank);
  const std::int64_t second = 2 * std::ssize(micro_batch_.group) - 1 - rank;
  std::vector<CutPiece> pieces;
  pieces.reserve(2 * micro_batch_.spans.size());
  for (std::size_t span = 0; span < micro_batch_.spans.size(); ++span) {
    for (const std::int64_t part : {rank, second}) {
      const std::int64_t begin = spans_.part_begin(span, part);
      pieces.push_back({span, begin, spans_.part_begin(span, part + 1) - begin});
    }
  }
  return pieces;
}

std::vector<CutPiece> joined(const std::vector<CutPiece>& pieces) {
  std::vector<CutPiece> whole;
  for (const CutPiece& piece : pieces) {
    if (piece.tokens == 0) continue;
    const bool follows = !whole.empty() && whole.back().document == piece.document && whole.back().end() == piece.begin;
    if (follows) {
      whole.back().tokens += piece.tokens;
    } else {
      whole.push_back(piece);
    }
  }
  return whole;
}

std::vector<HeldQueries> moved_by_holder(const MicroBatch& micro_batch) {
  if (micro_batch.moved.empty()) return {};
  struct Holding {
    std::int64_t end;
    std::size_t holder;
  };
  std::map<std::pair<std::size_t, std::int64_t>, Holding> holdings;  // by span and begin
  const HeldPieces held(micro_batch);
  for (std::size_t index = 0; index < micro_batch.group.size(); ++index) {
    for (const CutPiece& piece : joined(held.of(index))) holdings[{piece.document, piece.begin}] = {piece.end(), index};
  }
  std::vector<HeldQueries> moved;
  for (const ServedQueries& queries : micro_batch.moved) {
    for (std::int64_t begin = queries.begin; begin < queries.end();) {
      const auto above = holdings.upper_bound({queries.span, begin});
      HDPSIM_CHECK(above != holdings.begin(), "nobody holds token {} of span {}", begin, queries.span);
      const Holding& holding = std::prev(above)->second;
      const std::int64_t end = std::min(queries.end(), holding.end);
      HDPSIM_CHECK(end > begin, "nobody holds token {} of span {}", begin, queries.span);
      moved.push_back({{queries.span, begin, end - begin, queries.server}, holding.holder});
      begin = end;
    }
  }
  return moved;
}

}  // namespace hdpsim
