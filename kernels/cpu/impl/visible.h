#pragma once

#include <cstdint>

#include "kernels/cpu/impl/product.h"
#include "kernels/spec/attention.h"

namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

/// The keys of a chunk that the queries of a block see. Queries count from the first of the block, keys from the first
/// of the chunk.
struct Visible {
  std::int64_t keys;   ///< Number of keys of the chunk.
  std::int64_t first;  ///< Keys that query 0 sees, if each query sees one more than the one before; may be negative.
  bool causal;

  Visible(const AttentionBlock& block, std::int64_t chunk_begin, std::int64_t chunk_keys)
      : keys(chunk_keys), first(1 + block.keys - block.queries - chunk_begin), causal(block.mask == Mask::causal) {}

  /// The number of keys that query `row` sees: the first ones of the chunk.
  [[nodiscard]] std::int64_t to(std::int64_t row) const { return causal ? least(keys, most(0, first + row)) : keys; }
  /// The first query that sees key `key`; may lie beyond the last one.
  [[nodiscard]] std::int64_t from(std::int64_t key) const { return causal ? most(0, key + 1 - first) : 0; }
};

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
