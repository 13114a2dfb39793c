#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/spec/attention.h"

namespace hdpsim::kernels {

/// How the rows of a document are cut among the n ranks of a ring.
///   zigzag      2 n chunks; rank r holds chunk r and chunk 2 n - 1 - r, which gives all ranks the same work under a
///               causal mask
///   contiguous  n chunks; rank r holds chunk r
enum class Sharding { zigzag, contiguous };

/// Rows [begin, begin + rows) of a document, which are rows [local_begin, local_begin + rows) of the rank that holds
/// them.
struct Piece {
  std::int64_t document = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  std::int64_t local_begin = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Packed documents on a ring of ranks. Chunk c of the m chunks of a document of L rows is [floor(c L / m),
/// floor((c + 1) L / m)), so that any length works without padding; chunks of short documents may be empty. A rank
/// holds its chunks of the first document, then those of the second, and so on.
class ShardedDocuments {
 public:
  /// UnsupportedInput for a negative length or less than one rank.
  ShardedDocuments(std::vector<std::int64_t> lengths, int ranks, Sharding sharding = Sharding::zigzag);

  /// Where chunk `chunk` (0 ... m) of a document begins; ascending, from 0 for the first to the length for chunk m.
  using ChunkBegin = std::function<std::int64_t(std::size_t document, int chunk)>;
  /// Zigzag over chunks with the given begins.
  ShardedDocuments(std::vector<std::int64_t> lengths, int ranks, ChunkBegin chunk_begin);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// The longest document's rows; 0 without a document.
  [[nodiscard]] std::int64_t longest() const;
  /// Rows of the rank at `position` of the ring.
  [[nodiscard]] std::int64_t rows(int position) const;
  /// The largest rows() of all ranks.
  [[nodiscard]] std::int64_t most_rows() const;
  /// The pieces of a rank in the order in which it holds them: for each document one piece (contiguous) or two
  /// (zigzag). Pieces may be empty.
  [[nodiscard]] std::vector<Piece> pieces(int position) const;
  /// Attention of the queries of the rank at `position` to the keys of the rank at `source`, one block per document;
  /// blocks without work are left out. Zigzag has three kinds:
  ///   source = position  all queries, all keys, causal: the head comes before the tail, as it does in the document
  ///   source < position  all queries, the first chunk of the keys, full
  ///   source > position  the second chunk of the queries, all keys, full
  [[nodiscard]] std::vector<AttentionBlock> blocks(int position, int source) const;

 private:
  [[nodiscard]] int chunks() const { return sharding_ == Sharding::zigzag ? 2 * ranks_ : ranks_; }
  [[nodiscard]] std::int64_t chunk_begin(std::size_t document, int chunk) const;
  [[nodiscard]] std::int64_t chunk_rows(std::size_t document, int chunk) const;
  [[nodiscard]] std::int64_t rows(std::size_t document, int position) const;
  [[nodiscard]] AttentionBlock block(std::size_t document, int position, int source) const;

  std::vector<std::int64_t> lengths_;
  int ranks_;
  Sharding sharding_;
  ChunkBegin chunk_begin_;  ///< Empty: chunks of equal length.
};

/// Rows [held, held + rows) of a rank are rows [begin, begin + rows) of its group.
struct RowRange {
  std::int64_t held = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// The rows of a group of ranks, each of which holds some of them, in the order that they have in common.
struct GroupRows {
  std::vector<int> members;                 ///< Ranks of the transport, in the order of the group.
  int position = 0;                         ///< Of the calling rank among them.
  std::vector<std::vector<RowRange>> held;  ///< By member.

  [[nodiscard]] std::int64_t rows(std::size_t member) const {
    std::int64_t sum = 0;
    for (const RowRange& range : held[member]) sum += range.rows;
    return sum;
  }
  /// Rows of the calling rank.
  [[nodiscard]] std::int64_t own() const { return rows(static_cast<std::size_t>(position)); }
  /// The most rows of a member: what every member has of a collective, whose parts are of one size.
  [[nodiscard]] std::int64_t most() const {
    std::int64_t most = 0;
    for (std::size_t member = 0; member < held.size(); ++member) most = std::max(most, rows(member));
    return most;
  }
  /// Rows of all members.
  [[nodiscard]] std::int64_t all() const {
    std::int64_t sum = 0;
    for (std::size_t member = 0; member < held.size(); ++member) sum += rows(member);
    return sum;
  }
};

}  // namespace hdpsim::kernels
