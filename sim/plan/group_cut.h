#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// Consecutive tokens of one document on one rank. Each sees the tokens of its document up to itself.
struct CutPiece {
  std::size_t document = 0;  ///< Index into the lengths of the documents.
  std::int64_t begin = 0;    ///< The first token, counted from the begin of the document.
  std::int64_t tokens = 0;

  [[nodiscard]] std::int64_t end() const { return begin + tokens; }
  /// (query, key) pairs under the causal mask.
  [[nodiscard]] Int128 pairs() const { return Int128{tokens} * begin + Int128{tokens} * (tokens + 1) / 2; }
  friend bool operator==(const CutPiece&, const CutPiece&) = default;
};

/// What a rank has to do, and needs from others.
struct RankWork {
  Int128 pairs = 0;  ///< (query, key) pairs of its queries.
  std::int64_t tokens = 0;
  /// Keys that its queries see and that are not its own, each counted once: of each document those before the end of
  /// the rank's last piece.
  std::int64_t remote_keys = 0;
  friend bool operator==(const RankWork&, const RankWork&) = default;
};

/// The tokens of documents that are packed one after another, cut over the ranks of a group: chunks of tokens, each of
/// which belongs to one rank. The ways of cutting for N ranks are
///   - per_document: chunk p has part p of every document. A document has 2N parts of floor(tokens / 2N); the remainder
///     is dealt one token each round the parts, going on behind the part where the document before ended. Rank r has
///     parts r and 2N - 1 - r, a zigzag (WLB-LLM, Wang et al., OSDI 2025). The executor deals the remainder to ranks
///     instead (SpanCuts), so that their totals differ by a token at most; no price sees the difference.
///   - per_pack: the same, with the whole pack for a document. The attention of its ranks is unequal, but it has fewer
///     and longer pieces.
///   - dispatch: chunks of c consecutive tokens of the pack. In the order of falling (query, key) pairs, the later of
///     equal ones first, each goes to the rank with fewest pairs so far that has not got its equal number of chunks,
///     the lowest of these (MagiAttention, SandAI 2025, its algorithm by a min-heap).
///   - served: the pack in 2N consecutive parts, of which rank r has parts r and N + r (see served_cut.h).
class GroupCut {
 public:
  virtual ~GroupCut() = default;
  [[nodiscard]] virtual std::int64_t ranks() const = 0;
  /// The number of chunks.
  [[nodiscard]] virtual std::int64_t chunks() const = 0;
  /// The chunks of a rank, in the order in which it got them.
  [[nodiscard]] virtual std::vector<std::int64_t> chunks_of(std::int64_t rank) const = 0;
  /// The tokens of a chunk, by document; chunks of padding have none. O(pieces + log documents).
  [[nodiscard]] virtual std::vector<CutPiece> pieces(std::int64_t chunk) const = 0;
  /// By rank: what its own queries need, or those whose attention it computes. O(pieces).
  [[nodiscard]] virtual std::vector<RankWork> work() const;
};

/// Cuts documents of these lengths, none of them negative, over `ranks` ranks, at least 1 (both checked).
/// O(documents), for dispatch O(n log n) in its chunks; see dispatch_cut(). With `served`, holders compute the
/// attention of all their queries but those that `moved`, which other cuts have none of.
[[nodiscard]] std::unique_ptr<GroupCut> make_group_cut(TokenCut cut, const std::vector<std::int64_t>& lengths,
                                                       std::int64_t ranks,
                                                       const std::vector<ServedQueries>& moved = {});

/// The tokens that the group of a micro-batch shares, its padding as one more document, as its cut says.
[[nodiscard]] std::unique_ptr<GroupCut> group_cut_of(const MicroBatch& micro_batch);

/// Whether the ranks of a micro-batch's group have unequal attention: not where every span is cut over all of them.
[[nodiscard]] bool is_uneven(const MicroBatch& micro_batch);

/// The (query, key) pairs of what the group of a micro-batch shares, as if all its ranks had as many as the busiest
/// one.
[[nodiscard]] double area_of_busiest(const MicroBatch& micro_batch);

/// dispatch with chunks of at most `most_tokens`: c = min(most_tokens, ceil(tokens / 8N)), at least 1. The pack is
/// padded to a multiple of c N tokens; padding has no pairs.
[[nodiscard]] std::unique_ptr<GroupCut> dispatch_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks,
                                                     std::int64_t most_tokens);

/// The pieces of a rank by document and place in it, those that follow each other not joined.
[[nodiscard]] std::vector<CutPiece> pieces_of(const GroupCut& cut, std::int64_t rank);

}  // namespace hdpsim
