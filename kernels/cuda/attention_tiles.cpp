#include "kernels/cuda/attention_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda {
namespace {

/// A window that reaches from the last query to the first key hides nothing.
std::int64_t window_of(const AttentionBlock& block) {
  return block.window == 0 || block.window >= block.keys + block.lead ? no_window : block.window;
}

void require_31_bits(const AttentionBlock& block) {
  const std::int64_t end = std::max(block.query_begin + block.queries, block.key_begin + block.keys);
  if (end > std::numeric_limits<std::int32_t>::max()) {
    throw UnsupportedInput(
        fmt::format("attention: a packed tensor of {} rows is too long; 2^31 - 1 is the limit", end));
  }
  if (window_of(block) != no_window && block.window > no_window - block.queries - block.keys) {
    throw UnsupportedInput(fmt::format("attention: a window of {} tokens is too long for so many rows", block.window));
  }
}

/// The part of `block` from query `first_query` and key `first_key` (of the block) on.
AttentionTile part_of(const AttentionBlock& block, std::int64_t first_query, std::int64_t queries,
                      std::int64_t first_key, std::int64_t keys) {
  const std::int64_t seen_by_first =
      block.mask == Mask::full ? block.keys : first_query + 1 + block.keys - block.queries + block.lead;
  // Behind these bounds all or none are seen, and a long lead may leave 31 bits.
  const std::int64_t window = window_of(block);
  const std::int64_t farthest = window == no_window ? keys : keys + window;
  return {.query_row = static_cast<std::int32_t>(block.query_begin + first_query),
          .queries = static_cast<std::int32_t>(queries),
          .key_row = static_cast<std::int32_t>(block.key_begin + first_key),
          .keys = static_cast<std::int32_t>(keys),
          .first_query_keys = static_cast<std::int32_t>(std::clamp(seen_by_first - first_key, -queries, farthest)),
          .window = static_cast<std::int32_t>(window)};
}

}  // namespace

std::vector<AttentionTile> query_tiles(std::span<const AttentionBlock> blocks, std::int64_t rows) {
  std::vector<AttentionTile> tiles;
  for (const AttentionBlock& block : blocks) {
    require_31_bits(block);
    for (std::int64_t first = 0; first < block.queries; first += rows) {
      const std::int64_t queries = std::min(rows, block.queries - first);
      const std::int64_t first_key = seen_keys(block, first).begin;
      const std::int64_t end_key = seen_keys(block, first + queries - 1).end;
      tiles.push_back(part_of(block, first, queries, first_key, end_key - first_key));
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const AttentionTile& a, const AttentionTile& b) { return a.keys > b.keys; });
  return tiles;
}

std::vector<AttentionTile> key_tiles(std::span<const AttentionBlock> blocks, std::int64_t rows) {
  std::vector<AttentionTile> tiles;
  for (const AttentionBlock& block : blocks) {
    require_31_bits(block);
    for (std::int64_t first = 0; first < block.keys; first += rows) {
      // The first query that sees a key of the tile, and the one behind the last; under a causal mask query i is at
      // key i + keys - queries + lead.
      const std::int64_t keys = std::min(rows, block.keys - first);
      const std::int64_t behind = block.queries - block.keys - block.lead;
      const std::int64_t first_query = block.mask == Mask::full ? 0 : std::max<std::int64_t>(0, first + behind);
      const std::int64_t end_query =
          block.window == 0 ? block.queries : std::min(block.queries, first + keys - 1 + behind + block.window);
      if (first_query >= end_query) continue;
      tiles.push_back(part_of(block, first_query, end_query - first_query, first, keys));
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const AttentionTile& a, const AttentionTile& b) { return a.queries > b.queries; });
  return tiles;
}

std::int32_t heads_in_cache(std::int64_t heads, std::int64_t bytes_per_head, std::int64_t cache_bytes) {
  std::int64_t fitting = heads;
  while (fitting > 1 && (heads % fitting != 0 || fitting * bytes_per_head > cache_bytes)) --fitting;
  return static_cast<std::int32_t>(fitting);
}

TileOrder tile_order(std::size_t tiles, std::int64_t heads, std::int64_t bytes_per_head, std::int64_t cache_bytes) {
  const std::int64_t items = static_cast<std::int64_t>(tiles) * heads;
  if (items > std::numeric_limits<std::int32_t>::max()) {
    throw UnsupportedInput(fmt::format(
        "attention: {} tiles with {} heads are too much for one launch; 2^31 - 1 is the limit", tiles, heads));
  }
  return {.tiles = static_cast<std::int32_t>(tiles),
          .heads = static_cast<std::int32_t>(heads),
          .section = heads_in_cache(heads, bytes_per_head, cache_bytes)};
}

std::int64_t parts_of_group(std::int64_t heads_per_kv_head, std::int64_t items, std::int64_t wanted) {
  for (std::int64_t parts = 1; parts < heads_per_kv_head; ++parts) {
    if (heads_per_kv_head % parts == 0 && items * parts >= wanted) return parts;
  }
  return heads_per_kv_head;
}

}  // namespace hdpsim::kernels::cuda
