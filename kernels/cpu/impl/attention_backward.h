#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/cpu/impl/product.h"
#include "kernels/cpu/impl/vector.h"
#include "kernels/cpu/impl/visible.h"

/// Flash attention, backward: for each chunk of keys of a key-value head, dK and dV stay in scratch while all queries
/// of all its query heads pass; each tile of (queries, keys) recomputes its probabilities from the LSE and adds to dQ,
/// dK, dV. What the mask hides is not computed, as in the forward pass.
namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

struct BackwardScratch {
  // Multiples of strip and panel, as in the forward pass.
  static constexpr std::int64_t tile_queries = 96;
  static constexpr std::int64_t tile_keys = 192;
  static constexpr std::int64_t chunk_queries = 960;
  static constexpr std::int64_t chunk_keys = 960;
  static constexpr int widest = 256;

  static constexpr std::int64_t key_floats = chunk_keys * padded_row<widest>;
  static constexpr std::int64_t query_floats = chunk_queries * padded_row<widest>;
  static constexpr std::int64_t floats =
      5 * key_floats + 3 * query_floats + 2 * tile_queries * tile_keys + 2 * chunk_queries;

  float* key_panels;    ///< Transposed.
  float* value_panels;  ///< Transposed.
  float* keys;          ///< Rows.
  float* d_k;           ///< Rows, times 1 / ln(2).
  float* d_v;           ///< Rows.
  float* queries;       ///< Rows, times scale log2(e).
  float* d_o;           ///< Rows.
  float* d_q;           ///< Rows, divided by scale.
  float* p;             ///< [tile_queries, tile_keys]
  float* d_s;           ///< [tile_queries, tile_keys]
  float* lse;           ///< [chunk_queries], times log2(e); +inf for rows that see no key, which makes P = 0.
  float* delta;         ///< [chunk_queries]

  explicit BackwardScratch(float* memory)
      : key_panels(memory),
        value_panels(key_panels + key_floats),
        keys(value_panels + key_floats),
        d_k(keys + key_floats),
        d_v(d_k + key_floats),
        queries(d_v + key_floats),
        d_o(queries + query_floats),
        d_q(d_o + query_floats),
        p(d_q + query_floats),
        d_s(p + tile_queries * tile_keys),
        lse(d_s + tile_queries * tile_keys),
        delta(lse + chunk_queries) {}
};

/// A tile of a chunk of queries by a chunk of keys.
struct BackwardTile {
  std::int64_t chunk_query;  ///< First query of the chunk in the block.
  std::int64_t query;        ///< First query of the tile in the chunk.
  std::int64_t queries;
  std::int64_t key;  ///< First key of the tile in the chunk.
  std::int64_t keys;

  /// Columns of P and dS that count for a row of the tile; for one behind the last, none.
  [[nodiscard]] Columns seen(const Visible& visible, std::int64_t row) const {
    return row < queries ? seen_columns(visible, chunk_query + query + row, key, keys) : Columns{0, 0};
  }
  /// Columns that exist for the strip of rows from `strip_begin` on: those that its rows see, in whole panels.
  [[nodiscard]] Columns computed(const Visible& visible, std::int64_t strip_begin) const {
    const std::int64_t first = chunk_query + query;
    return computed_columns(visible, first + strip_begin, first + least(queries, strip_begin + strip) - 1, key, keys);
  }
};

inline void zero(float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) from[i] = 0;
}

/// Turns scores into P and dP into dS, in place, for one row.
inline void backward_softmax_row(float* scores, float* d_p, const Columns& seen, const Columns& computed, float lse,
                                 float delta) {
  for (std::int64_t i = computed.begin; i < seen.begin; ++i) scores[i] = -infinity;
  for (std::int64_t i = most(computed.begin, seen.end); i < computed.end; ++i) scores[i] = -infinity;
  for (std::int64_t i = computed.begin; i < computed.end; i += width) {
    const Vector p = exp2(load(scores + i) - broadcast(lse));
    store(scores + i, p);
    store(d_p + i, p * (load(d_p + i) - broadcast(delta)));
  }
}

/// P and dS of one tile; zero where a panel is hidden from a strip, because the products below read whole tiles.
template <int dim, int value_dim>
inline void backward_scores(const BackwardScratch& scratch, const Visible& visible, const BackwardTile& tile) {
  constexpr std::int64_t row_of_scores = BackwardScratch::tile_keys;
  constexpr std::int64_t row = padded_row<dim>;
  constexpr std::int64_t value_row = padded_row<value_dim>;
  const float* queries = scratch.queries + tile.query * row;
  const float* d_o = scratch.d_o + tile.query * value_row;
  const std::int64_t all = round_up(tile.keys, panel);
  const auto is_computed = [&](std::int64_t first, std::int64_t column) {
    const Columns columns = tile.computed(visible, first);
    return column >= columns.begin && column < columns.end;
  };
  for (std::int64_t column = 0; column < all; column += panel) {
    const float* key_panel = scratch.key_panels + (tile.key + column) * dim;
    const float* value_panel = scratch.value_panels + (tile.key + column) * value_dim;
    for (std::int64_t first = 0; first < tile.queries; first += strip) {
      if (!is_computed(first, column)) continue;
      multiply<Into::overwrite, row, 1, panel, row_of_scores>(queries + first * row, key_panel, dim,
                                                              scratch.p + first * row_of_scores + column);
    }
    for (std::int64_t first = 0; first < tile.queries; first += strip) {
      if (!is_computed(first, column)) continue;
      multiply<Into::overwrite, value_row, 1, panel, row_of_scores>(d_o + first * value_row, value_panel, value_dim,
                                                                    scratch.d_s + first * row_of_scores + column);
    }
  }
  for (std::int64_t query = 0; query < round_up(tile.queries, strip); ++query) {
    const Columns computed = tile.computed(visible, query / strip * strip);
    float* p = scratch.p + query * row_of_scores;
    float* d_s = scratch.d_s + query * row_of_scores;
    if (computed.empty()) {
      zero(p, all);
      zero(d_s, all);
      continue;
    }
    backward_softmax_row(p, d_s, tile.seen(visible, query), computed, scratch.lse[tile.query + query],
                         scratch.delta[tile.query + query]);
    for (float* row_of_tile : {p, d_s}) {
      zero(row_of_tile, computed.begin);
      zero(row_of_tile + computed.end, all - computed.end);
    }
  }
}

/// Rows of dK or dV, which are the keys of the tile: scores^T times rows of its chunk of queries. A strip of keys needs
/// the queries from the first that sees its first key to the last that sees its last one.
template <int dim>
inline void backward_key_gradient(const Visible& visible, const BackwardTile& tile, const float* scores,
                                  const float* rows, float* gradient) {
  constexpr std::int64_t row_of_scores = BackwardScratch::tile_keys;
  constexpr std::int64_t row = padded_row<dim>;
  for (int column = 0; column < dim; column += panel) {
    for (std::int64_t first = 0; first < tile.keys; first += strip) {
      const std::int64_t last = tile.key + least(tile.keys, first + strip) - 1;
      const std::int64_t begin = most(0, visible.from(tile.key + first) - tile.chunk_query - tile.query);
      const std::int64_t end = least(tile.queries, visible.until(last) - tile.chunk_query - tile.query);
      if (begin >= end) continue;
      multiply<Into::add, 1, row_of_scores, row, row>(scores + begin * row_of_scores + first,
                                                      rows + (tile.query + begin) * row + column, end - begin,
                                                      gradient + (tile.key + first) * row + column);
    }
  }
}

/// dV += P^T dO, dK += dS^T Q, dQ += dS K for one tile whose P and dS are computed.
template <int dim, int value_dim>
inline void backward_gradients(const BackwardScratch& scratch, const Visible& visible, const BackwardTile& tile) {
  constexpr std::int64_t row_of_scores = BackwardScratch::tile_keys;
  constexpr std::int64_t row = padded_row<dim>;
  backward_key_gradient<value_dim>(visible, tile, scratch.p, scratch.d_o, scratch.d_v);
  backward_key_gradient<dim>(visible, tile, scratch.d_s, scratch.queries, scratch.d_k);
  for (int column = 0; column < dim; column += panel) {
    for (std::int64_t first = 0; first < tile.queries; first += strip) {
      const Columns columns = tile.computed(visible, first);
      if (columns.empty()) continue;
      multiply<Into::add, row_of_scores, 1, row, row>(
          scratch.d_s + first * row_of_scores + columns.begin, scratch.keys + (tile.key + columns.begin) * row + column,
          columns.end - columns.begin, scratch.d_q + (tile.query + first) * row + column);
    }
  }
}

/// to += factor x from, for rows [rows, dim] out of scratch.
template <int dim>
inline void add_rows(const float* from, std::int64_t rows, float factor, float* to, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (int i = 0; i < dim; i += width) {
      float* at = to + row * stride + i;
      store(at, multiply_add(load(from + row * padded_row<dim> + i), broadcast(factor), load(at)));
    }
  }
}

/// One chunk of queries of one head against the packed chunk of keys, of queries before `end_query`.
template <int dim, int value_dim>
inline void backward_queries(const AttentionBackward& op, const AttentionBlock& block, std::int64_t head,
                             std::int64_t chunk_query, std::int64_t end_query, const Visible& visible,
                             const BackwardScratch& scratch, const Workspace& workspace) {
  constexpr std::int64_t row = padded_row<dim>;
  const std::int64_t count = least(BackwardScratch::chunk_queries, end_query - chunk_query);
  const std::int64_t padded = round_up(count, strip);
  const std::int64_t first_row = block.query_begin + chunk_query;
  pack_rows<dim>(static_cast<const float*>(op.q.data) + first_row * op.q.stride + head * dim, op.q.stride, count,
                 padded, op.heads.scale * log2_e, scratch.queries);
  pack_rows<value_dim>(static_cast<const float*>(op.d_o.data) + first_row * op.d_o.stride + head * value_dim,
                       op.d_o.stride, count, padded, 1, scratch.d_o);
  zero(scratch.d_q, padded * row);
  for (std::int64_t query = 0; query < padded; ++query) {
    const std::int64_t at = head * op.lse_stride + first_row + query;
    const bool sees = query < count && op.lse[at] != -infinity;
    scratch.lse[query] = sees ? op.lse[at] * log2_e : infinity;
    scratch.delta[query] = sees ? op.delta[at] : 0;
  }

  const std::int64_t end = visible.to(chunk_query + count - 1);
  // Strips of keys must end where the chunk's do: tiles begin at multiples of strip and panel.
  const std::int64_t begin =
      visible.hidden(chunk_query) / BackwardScratch::tile_queries * BackwardScratch::tile_queries;
  for (std::int64_t key = begin; key < end; key += BackwardScratch::tile_keys) {
    const std::int64_t keys = least(BackwardScratch::tile_keys, visible.keys - key);
    const std::int64_t first = most(0, visible.from(key) - chunk_query) / strip * strip;
    const std::int64_t last = least(count, visible.until(key + keys - 1) - chunk_query);
    for (std::int64_t query = first; query < last; query += BackwardScratch::tile_queries) {
      workspace.progress(workspace.progress_state);
      const BackwardTile tile{.chunk_query = chunk_query,
                              .query = query,
                              .queries = least(BackwardScratch::tile_queries, last - query),
                              .key = key,
                              .keys = keys};
      backward_scores<dim, value_dim>(scratch, visible, tile);
      backward_gradients<dim, value_dim>(scratch, visible, tile);
    }
  }
  add_rows<dim>(scratch.d_q, count, op.heads.scale, op.d_q.data + first_row * op.d_q.stride + head * dim,
                op.d_q.stride);
}

/// One chunk of one block's keys, for one key-value head.
template <int dim, int value_dim>
inline void backward_chunk(const AttentionBackward& op, const AttentionBlock& block, std::int64_t kv_head,
                           std::int64_t chunk_key, const BackwardScratch& scratch, const Workspace& workspace) {
  const std::int64_t keys = least(BackwardScratch::chunk_keys, block.keys - chunk_key);
  const std::int64_t key_row = block.key_begin + chunk_key;
  const float* k = static_cast<const float*>(op.k.data) + key_row * op.k.stride + kv_head * dim;
  const float* v = static_cast<const float*>(op.v.data) + key_row * op.v.stride + kv_head * value_dim;
  pack_transposed<dim>(k, op.k.stride, keys, scratch.key_panels);
  pack_transposed<value_dim>(v, op.v.stride, keys, scratch.value_panels);
  pack_rows<dim>(k, op.k.stride, keys, round_up(keys, panel), 1, scratch.keys);
  const std::int64_t padded = round_up(keys, strip);
  zero(scratch.d_k, padded * padded_row<dim>);
  zero(scratch.d_v, padded * padded_row<value_dim>);

  const Visible visible(block, chunk_key, keys);
  const std::int64_t end_query = least(block.queries, visible.until(keys - 1));
  const std::int64_t group = op.heads.heads / op.heads.kv_heads;
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (std::int64_t query = visible.from(0) / strip * strip; query < end_query;
         query += BackwardScratch::chunk_queries) {
      backward_queries<dim, value_dim>(op, block, head, query, end_query, visible, scratch, workspace);
    }
  }
  add_rows<dim>(scratch.d_k, keys, ln_2, op.d_k.data + key_row * op.d_k.stride + kv_head * dim, op.d_k.stride);
  add_rows<value_dim>(scratch.d_v, keys, 1, op.d_v.data + key_row * op.d_v.stride + kv_head * value_dim, op.d_v.stride);
}

template <int dim, int value_dim>
inline void attention_backward_of_dim(const AttentionBackward& op, const Workspace& workspace) {
  const BackwardScratch scratch(workspace.scratch);
  for (const AttentionBlock& block : op.blocks) {
    if (block.queries == 0) continue;
    for (std::int64_t kv_head = 0; kv_head < op.heads.kv_heads; ++kv_head) {
      for (std::int64_t key = 0; key < block.keys; key += BackwardScratch::chunk_keys) {
        backward_chunk<dim, value_dim>(op, block, kv_head, key, scratch, workspace);
      }
    }
  }
}

/// d_sink -= sum over the query rows of all blocks of exp(sink - LSE) delta.
inline void backward_sinks(const AttentionBackward& op) {
  for (std::int64_t head = 0; head < op.heads.heads; ++head) {
    if (op.sinks[head] == -infinity) continue;
    const float* lse = op.lse + head * op.lse_stride;
    const float* delta = op.delta + head * op.lse_stride;
    double sum = 0;  // fp32 would lose rows of a long launch
    for (const AttentionBlock& block : op.blocks) {
      for (std::int64_t row = block.query_begin; row < block.query_begin + block.queries; ++row) {
        sum += std::exp(static_cast<double>(op.sinks[head]) - static_cast<double>(lse[row])) *
               static_cast<double>(delta[row]);
      }
    }
    op.d_sinks[head] -= static_cast<float>(sum);
  }
}

inline void attention_backward(const AttentionBackward& op, const Workspace& workspace) {
  if (op.sinks != nullptr) backward_sinks(op);
  switch (op.heads.dim) {
    case 64:
      return attention_backward_of_dim<64, 64>(op, workspace);
    case 128:
      return attention_backward_of_dim<128, 128>(op, workspace);
    case 192:
      return attention_backward_of_dim<192, 128>(op, workspace);
    default:
      return attention_backward_of_dim<256, 256>(op, workspace);
  }
}

inline void attention_delta(const AttentionDelta& op) {
  const std::int64_t dim = op.heads.value_width();
  for (std::int64_t row = 0; row < op.rows; ++row) {
    for (std::int64_t head = 0; head < op.heads.heads; ++head) {
      const float* o = static_cast<const float*>(op.o.data) + row * op.o.stride + head * dim;
      const float* d_o = static_cast<const float*>(op.d_o.data) + row * op.d_o.stride + head * dim;
      Vector sum{};
      for (std::int64_t i = 0; i < dim; i += width) sum = multiply_add(load(o + i), load(d_o + i), sum);
      op.delta[head * op.rows + row] = sum_of(sum);
    }
  }
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
