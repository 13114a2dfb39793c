#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/impl/product.h"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

/// The keys of a chunk that the queries of a block see. Queries count from the first of the block, keys from the first
/// of the chunk. What seen_keys() says of one query and a whole block, compiled for the instruction set, and its
/// inverse.
struct Visible {
  std::int64_t keys;    ///< Number of keys of the chunk.
  std::int64_t first;   ///< Keys up to that of query 0, which each query moves on by one; may be negative.
  std::int64_t window;  ///< Keys that a query sees at most.
  bool causal;

  Visible(const AttentionBlock& block, std::int64_t chunk_begin, std::int64_t chunk_keys)
      : keys(chunk_keys),
        first(1 + block.keys - block.queries + block.lead - chunk_begin),
        window(block.window > 0 ? block.window : std::numeric_limits<std::int64_t>::max() / 4),
        causal(block.mask == Mask::causal) {}

  /// Query `row` sees keys [hidden(row), to(row)), or none of the chunk where both are equal. Both grow with the row.
  [[nodiscard]] std::int64_t to(std::int64_t row) const { return causal ? least(keys, most(0, first + row)) : keys; }
  [[nodiscard]] std::int64_t hidden(std::int64_t row) const {
    return causal ? least(to(row), most(0, first + row - window)) : 0;
  }
  /// The queries [from(key), until(key)) see key `key`; both may lie beyond the last query.
  [[nodiscard]] std::int64_t from(std::int64_t key) const { return causal ? most(0, key + 1 - first) : 0; }
  [[nodiscard]] std::int64_t until(std::int64_t key) const {
    return causal ? most(0, key + 1 - first + window) : std::numeric_limits<std::int64_t>::max() / 2;
  }
};

/// The keys of a tile that one row sees, or the panels of them that exist for a strip of rows: columns [begin, end).
struct Columns {
  std::int64_t begin;
  std::int64_t end;
  [[nodiscard]] bool empty() const { return begin >= end; }
};

/// Keys [key, key + keys) of the chunk, as query `row` sees them.
inline Columns seen_columns(const Visible& visible, std::int64_t row, std::int64_t key, std::int64_t keys) {
  const auto within = [&](std::int64_t at) { return least(keys, most(0, at - key)); };
  return {within(visible.hidden(row)), within(visible.to(row))};
}

/// The whole panels that rows [row, last_row] need of these keys.
inline Columns computed_columns(const Visible& visible, std::int64_t row, std::int64_t last_row, std::int64_t key,
                                std::int64_t keys) {
  const std::int64_t begin = seen_columns(visible, row, key, keys).begin;
  const std::int64_t end = seen_columns(visible, last_row, key, keys).end;
  return {begin / panel * panel, begin < end ? round_up(end, panel) : 0};
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
