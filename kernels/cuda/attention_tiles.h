#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/spec/attention.h"

/// Division of attention into tiles for thread blocks, on the host: the kernels only process a list. Plain C++, for
/// every CUDA path.
namespace hdpsim::kernels::cuda {

/// A rectangle of one document: query rows [query_row, query_row + queries) against key rows [key_row, key_row + keys)
/// of the packed tensors. Query i of the tile sees its keys [hidden_keys(i), seen_keys(i)), and neither falls from one
/// query to the next.
struct AttentionTile {
  std::int32_t query_row;
  std::int32_t queries;
  std::int32_t key_row;
  std::int32_t keys;
  /// Keys up to that of query 0, if there were enough; negative if query 0 comes before all keys.
  std::int32_t first_query_keys;
  std::int32_t window;  ///< Keys that a query sees at most, the last up to its own; no_window: all of them.

  /// The number of keys that query i sees; also defined for i >= queries, the rows that pad the tile.
  [[nodiscard]] HDPSIM_ANYWHERE std::int32_t seen_keys(std::int32_t i) const {
    const std::int32_t seen = first_query_keys + i;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }
  /// The number of first keys that are out of query i's window, no more than seen_keys(i).
  [[nodiscard]] HDPSIM_ANYWHERE std::int32_t hidden_keys(std::int32_t i) const {
    const std::int32_t own = first_query_keys + i;
    if (own <= window) return 0;
    return own - window < keys ? own - window : keys;
  }
  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};

inline constexpr std::int32_t no_window = 2147483647;

/// Forward, and what else owns query rows: `rows` query rows a tile (fewer at the end of a document) with all keys that
/// any of them sees. Every query row of every block is in exactly one tile, also where it sees no key. Longest first,
/// by keys; equal ones in the order of the blocks. O(n log n). UnsupportedInput where rows do not fit 31 bits.
[[nodiscard]] std::vector<AttentionTile> query_tiles(std::span<const AttentionBlock> blocks, std::int64_t rows);

/// Backward, and what else owns key rows: `rows` key rows a tile (fewer at the end of a document) with all queries that
/// see any of them; keys that no query sees are in no tile. Longest first, by queries. O(n log n).
[[nodiscard]] std::vector<AttentionTile> key_tiles(std::span<const AttentionBlock> blocks, std::int64_t rows);

/// The order in which thread blocks take tiles and heads. Work items are ordered by section of heads, then by tile,
/// then by head: the keys and values of one section fit the last-level cache, so that tiles find there what other tiles
/// have read. `heads` are query heads if tiles own query rows, else key-value heads (or parts of them).
struct TileOrder {
  std::int32_t tiles = 0;
  std::int32_t heads = 0;
  std::int32_t section = 1;  ///< Heads that run together. Divides heads.

  struct Item {
    std::int32_t tile;
    std::int32_t head;
  };
  [[nodiscard]] HDPSIM_ANYWHERE std::int32_t items() const { return tiles * heads; }
  [[nodiscard]] HDPSIM_ANYWHERE Item at(std::int32_t item) const {
    const std::int32_t within = item % (tiles * section);
    return {within / section, item / (tiles * section) * section + within % section};
  }
};

/// The largest divisor of `heads` for which that many heads fit a cache together, at least 1.
[[nodiscard]] std::int32_t heads_in_cache(std::int64_t heads, std::int64_t bytes_per_head, std::int64_t cache_bytes);

/// The order of `tiles` tiles with `heads` heads each, whose keys and values (or whatever the tiles of a head share)
/// are bytes_per_head. UnsupportedInput where items do not fit 31 bits.
[[nodiscard]] TileOrder tile_order(std::size_t tiles, std::int64_t heads, std::int64_t bytes_per_head,
                                   std::int64_t cache_bytes);

/// The number of parts in which to compute the query heads of one key-value head, each by a thread block of its own:
/// the fewest, a divisor of heads_per_kv_head, with which `items` (for one part) become `wanted`, or all if that is too
/// few.
[[nodiscard]] std::int64_t parts_of_group(std::int64_t heads_per_kv_head, std::int64_t items, std::int64_t wanted);

}  // namespace hdpsim::kernels::cuda
