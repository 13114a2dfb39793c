#include "kernels/ring/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {

ShardedDocuments::ShardedDocuments(std::vector<std::int64_t> lengths, int ranks, Sharding sharding)
    : lengths_(std::move(lengths)), ranks_(ranks), sharding_(sharding) {
  if (ranks < 1) throw UnsupportedInput(fmt::format("ring: {} ranks", ranks));
  for (const std::int64_t length : lengths_) {
    if (length < 0) throw UnsupportedInput(fmt::format("ring: a document of {} rows", length));
  }
}

ShardedDocuments::ShardedDocuments(std::vector<std::int64_t> lengths, int ranks, ChunkBegin chunk_begin)
    : ShardedDocuments(std::move(lengths), ranks, Sharding::zigzag) {
  chunk_begin_ = std::move(chunk_begin);
}

std::int64_t ShardedDocuments::chunk_begin(std::size_t document, int chunk) const {
  if (chunk_begin_) return chunk_begin_(document, chunk);
  const std::int64_t length = lengths_[document];
  // chunk * length / chunks() without the product, which a long document could overflow.
  return chunk * (length / chunks()) + chunk * (length % chunks()) / chunks();
}

std::int64_t ShardedDocuments::chunk_rows(std::size_t document, int chunk) const {
  return chunk_begin(document, chunk + 1) - chunk_begin(document, chunk);
}

std::int64_t ShardedDocuments::rows(std::size_t document, int position) const {
  const std::int64_t head = chunk_rows(document, position);
  return sharding_ == Sharding::zigzag ? head + chunk_rows(document, chunks() - 1 - position) : head;
}

std::int64_t ShardedDocuments::longest() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

std::int64_t ShardedDocuments::rows(int position) const {
  std::int64_t sum = 0;
  for (std::size_t document = 0; document < lengths_.size(); ++document) sum += rows(document, position);
  return sum;
}

std::int64_t ShardedDocuments::most_rows() const {
  std::int64_t most = 0;
  for (int position = 0; position < ranks_; ++position) most = std::max(most, rows(position));
  return most;
}

std::vector<Piece> ShardedDocuments::pieces(int position) const {
  std::vector<Piece> pieces;
  std::int64_t local = 0;
  for (std::size_t document = 0; document < lengths_.size(); ++document) {
    const auto add = [&](int chunk) {
      const std::int64_t rows = chunk_rows(document, chunk);
      pieces.push_back({static_cast<std::int64_t>(document), chunk_begin(document, chunk), rows,
                        std::exchange(local, local + rows)});
    };
    add(position);
    if (sharding_ == Sharding::zigzag) add(chunks() - 1 - position);
  }
  return pieces;
}

// The block of one document, with rows counted from its first on either side.
AttentionBlock ShardedDocuments::block(std::size_t document, int position, int source) const {
  const std::int64_t queries = rows(document, position);
  const std::int64_t keys = rows(document, source);
  if (source == position) return {.queries = queries, .keys = keys, .mask = Mask::causal};
  if (sharding_ == Sharding::contiguous) return {.queries = source < position ? queries : 0, .keys = keys};
  if (source < position) return {.queries = queries, .keys = chunk_rows(document, source)};
  const std::int64_t head = chunk_rows(document, position);
  return {.query_begin = head, .queries = queries - head, .keys = keys};
}

std::vector<AttentionBlock> ShardedDocuments::blocks(int position, int source) const {
  std::vector<AttentionBlock> blocks;
  std::int64_t query_begin = 0;
  std::int64_t key_begin = 0;
  for (std::size_t document = 0; document < lengths_.size(); ++document) {
    AttentionBlock next = block(document, position, source);
    next.query_begin += query_begin;
    next.key_begin += key_begin;
    if (next.queries > 0 && next.keys > 0) blocks.push_back(next);
    query_begin += rows(document, position);
    key_begin += rows(document, source);
  }
  return blocks;
}

}  // namespace hdpsim::kernels
