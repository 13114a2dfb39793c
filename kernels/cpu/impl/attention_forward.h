#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/cpu/impl/product.h"
#include "kernels/cpu/impl/vector.h"
#include "kernels/cpu/impl/visible.h"

/// Flash attention (Dao et al. 2022), forward: for each head, tiles of queries walk over tiles of keys with a running
/// maximum and sum for each row. Keys and values of a key-value head are packed once for all tiles and all query heads
/// that share them. Tiles, and within boundary tiles strips and panels, that the mask hides are not computed.
namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

struct ForwardScratch {
  // Multiples of strip and panel. Keys of a chunk are packed together: more of them cost scratch, fewer cost passes
  // over the output. A tile of keys and its scores stay in the second-level cache, a panel in the first.
  static constexpr std::int64_t tile_queries = 144;
  static constexpr std::int64_t tile_keys = 192;
  static constexpr std::int64_t chunk_keys = 3072;
  static constexpr int widest = 256;

  static constexpr std::int64_t packed_keys = chunk_keys * padded_row<widest>;
  static constexpr std::int64_t packed_queries = tile_queries * padded_row<widest>;
  static constexpr std::int64_t floats = 2 * packed_keys + 2 * packed_queries + tile_queries * (tile_keys + 3);

  float* keys;         ///< Panels, transposed.
  float* values;       ///< Rows.
  float* queries;      ///< Rows, times scale log2(e), so that scores are exponents of two.
  float* output;       ///< Rows, not divided by row_sum.
  float* scores;       ///< [tile_queries, tile_keys], then the probabilities relative to the row's maximum.
  float* row_maximum;  ///< [tile_queries]
  float* row_sum;      ///< [tile_queries]
  float* row_factor;   ///< [tile_queries]: factor by which the newest maximum scales earlier sums.

  explicit ForwardScratch(float* memory)
      : keys(memory),
        values(keys + packed_keys),
        queries(values + packed_keys),
        output(queries + packed_queries),
        scores(output + packed_queries),
        row_maximum(scores + tile_queries * tile_keys),
        row_sum(row_maximum + tile_queries),
        row_factor(row_sum + tile_queries) {}
};

/// Rows of one head's tile of queries in the caller's tensors.
struct ForwardRows {
  const float* q;
  std::int64_t q_stride;
  float* o;
  std::int64_t o_stride;
  float* lse;
  std::int64_t first;  ///< First row in the block.
  std::int64_t count;
  bool accumulate;
  float sink;  ///< -inf where these rows have none, or have it from another chunk.
};

/// Updates a row's maximum and sum with these scores; of the computed ones those that are seen count.
inline void forward_maximum_of_row(const ForwardScratch& scratch, std::int64_t query, const Columns& seen,
                                   const Columns& computed) {
  float* scores = scratch.scores + query * ForwardScratch::tile_keys;
  for (std::int64_t i = computed.begin; i < seen.begin; ++i) scores[i] = -infinity;
  for (std::int64_t i = seen.end; i < computed.end; ++i) scores[i] = -infinity;
  const float old_maximum = scratch.row_maximum[query];
  Vector largest[2] = {broadcast(old_maximum), broadcast(old_maximum)};
  for (std::int64_t i = computed.begin; i < computed.end; i += panel) {
    largest[0] = maximum(load(scores + i), largest[0]);
    largest[1] = maximum(load(scores + i + width), largest[1]);
  }
  const float new_maximum = maximum_of(maximum(largest[0], largest[1]));
  scratch.row_maximum[query] = new_maximum;
  scratch.row_factor[query] = old_maximum - (new_maximum == -infinity ? 0 : new_maximum);
}

/// Turns scores into probabilities relative to the row's maximum.
inline void forward_probabilities_of_row(const ForwardScratch& scratch, std::int64_t query, const Columns& computed) {
  float* scores = scratch.scores + query * ForwardScratch::tile_keys;
  const float largest = scratch.row_maximum[query];
  const Vector reference = broadcast(largest == -infinity ? 0 : largest);
  Vector sum[2] = {};
  for (std::int64_t i = computed.begin; i < computed.end; i += panel) {
    const Vector p0 = exp2(load(scores + i) - reference);
    const Vector p1 = exp2(load(scores + i + width) - reference);
    sum[0] += p0;
    sum[1] += p1;
    store(scores + i, p0);
    store(scores + i + width, p1);
  }
  const float factor = exp2(broadcast(scratch.row_factor[query]))[0];
  scratch.row_factor[query] = factor;
  scratch.row_sum[query] = scratch.row_sum[query] * factor + sum_of(sum[0] + sum[1]);
}

/// Scores of one tile of keys, which begins at `begin` of the chunk, and their contribution to the output.
template <int dim, int value_dim>
inline void forward_tile(const ForwardScratch& scratch, const Visible& visible, const ForwardRows& rows,
                         std::int64_t begin) {
  constexpr std::int64_t row_of_scores = ForwardScratch::tile_keys;
  constexpr std::int64_t row = padded_row<dim>;
  constexpr std::int64_t value_row = padded_row<value_dim>;
  const auto seen = [&](std::int64_t query) {
    return seen_columns(visible, rows.first + query, begin, ForwardScratch::tile_keys);
  };
  const auto computed = [&](std::int64_t first) {
    return computed_columns(visible, rows.first + first, rows.first + least(rows.count, first + strip) - 1, begin,
                            ForwardScratch::tile_keys);
  };

  const Columns of_tile =
      computed_columns(visible, rows.first, rows.first + rows.count - 1, begin, ForwardScratch::tile_keys);
  for (std::int64_t column = of_tile.begin; column < of_tile.end; column += panel) {
    const float* keys = scratch.keys + (begin + column) * dim;
    for (std::int64_t first = 0; first < rows.count; first += strip) {
      const Columns columns = computed(first);
      if (column < columns.begin || column >= columns.end) continue;
      multiply<Into::overwrite, row, 1, panel, row_of_scores>(scratch.queries + first * row, keys, dim,
                                                              scratch.scores + first * row_of_scores + column);
    }
  }
  // Maxima of a whole strip first: the rows' chains of dependent operations overlap.
  for (std::int64_t first = 0; first < rows.count; first += strip) {
    const Columns columns = computed(first);
    if (columns.empty()) continue;
    const std::int64_t end = least(rows.count, first + strip);
    for (std::int64_t query = first; query < end; ++query) forward_maximum_of_row(scratch, query, seen(query), columns);
    for (std::int64_t query = first; query < end; ++query) forward_probabilities_of_row(scratch, query, columns);
  }
  for (std::int64_t column = 0; column < value_dim; column += panel) {
    const float* values = scratch.values + begin * value_row + column;
    for (std::int64_t first = 0; first < rows.count; first += strip) {
      const Columns columns = computed(first);
      if (columns.empty()) continue;
      multiply<Into::rescale, row_of_scores, 1, value_row, value_row>(
          scratch.scores + first * row_of_scores + columns.begin, values + columns.begin * value_row,
          columns.end - columns.begin, scratch.output + first * value_row + column, scratch.row_factor + first);
    }
  }
}

/// Divides by the sums and writes the tile, merged with the earlier result if `accumulate` is set.
template <int value_dim>
inline void forward_finish(const ForwardScratch& scratch, const ForwardRows& rows) {
  for (std::int64_t query = 0; query < rows.count; ++query) {
    const float sum = scratch.row_sum[query];
    const bool empty = sum == 0;
    if (empty && rows.accumulate) continue;
    float lse = empty ? -infinity : (scratch.row_maximum[query] + std::log2(sum)) * ln_2;
    float factor = empty ? 0 : 1 / sum;
    float old_factor = 0;
    if (rows.accumulate) {
      const float old = rows.lse[query];
      const float largest = old > lse ? old : lse;
      const float merged = largest + std::log(std::exp(old - largest) + std::exp(lse - largest));
      old_factor = std::exp(old - merged);
      factor *= std::exp(lse - merged);
      lse = merged;
    }
    rows.lse[query] = lse;
    const float* from = scratch.output + query * padded_row<value_dim>;
    float* to = rows.o + query * rows.o_stride;
    for (int i = 0; i < value_dim; i += width) {
      const Vector part = load(from + i) * broadcast(factor);
      store(to + i, rows.accumulate ? multiply_add(broadcast(old_factor), load(to + i), part) : part);
    }
  }
}

template <int dim, int value_dim>
inline void forward_queries(const ForwardScratch& scratch, const Visible& visible, const ForwardRows& rows, float scale,
                            const Workspace& workspace) {
  const std::int64_t padded = round_up(rows.count, strip);
  pack_rows<dim>(rows.q, rows.q_stride, rows.count, padded, scale * log2_e, scratch.queries);
  for (std::int64_t i = 0; i < padded * padded_row<value_dim>; i += width) store(scratch.output + i, Vector{});
  for (std::int64_t query = 0; query < padded; ++query) {
    // A sink is a first score, of a value of zero.
    scratch.row_maximum[query] = rows.sink * log2_e;
    scratch.row_sum[query] = rows.sink == -infinity ? 0 : 1;
    scratch.row_factor[query] = 1;
  }
  const std::int64_t end = visible.to(rows.first + rows.count - 1);
  for (std::int64_t begin = visible.hidden(rows.first) / panel * panel; begin < end;
       begin += ForwardScratch::tile_keys) {
    workspace.progress(workspace.progress_state);
    forward_tile<dim, value_dim>(scratch, visible, rows, begin);
  }
  forward_finish<value_dim>(scratch, rows);
}

/// One chunk of one block's keys against all its queries, for one key-value head. Chunks after the first accumulate.
template <int dim, int value_dim>
inline void forward_chunk(const AttentionForward& op, const AttentionBlock& block, std::int64_t kv_head,
                          std::int64_t chunk_begin, const ForwardScratch& scratch, const Workspace& workspace) {
  const std::int64_t keys = least(ForwardScratch::chunk_keys, block.keys - chunk_begin);
  const std::int64_t key_row = block.key_begin + chunk_begin;
  pack_transposed<dim>(static_cast<const float*>(op.k.data) + key_row * op.k.stride + kv_head * dim, op.k.stride, keys,
                       scratch.keys);
  pack_rows<value_dim>(static_cast<const float*>(op.v.data) + key_row * op.v.stride + kv_head * value_dim, op.v.stride,
                       keys, round_up(keys, panel), 1, scratch.values);

  const Visible visible(block, chunk_begin, keys);
  const bool accumulate = op.accumulate || chunk_begin > 0;
  // Later chunks concern only the queries that see part of them.
  const std::int64_t first_query = chunk_begin > 0 ? visible.from(0) / strip * strip : 0;
  const std::int64_t end_query = chunk_begin > 0 ? least(block.queries, visible.until(keys - 1)) : block.queries;
  const std::int64_t group = op.heads.heads / op.heads.kv_heads;
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (std::int64_t first = first_query; first < end_query; first += ForwardScratch::tile_queries) {
      const std::int64_t row = block.query_begin + first;
      const ForwardRows rows{.q = static_cast<const float*>(op.q.data) + row * op.q.stride + head * dim,
                             .q_stride = op.q.stride,
                             .o = static_cast<float*>(op.o.data) + row * op.o.stride + head * value_dim,
                             .o_stride = op.o.stride,
                             .lse = op.lse + head * op.lse_stride + row,
                             .first = first,
                             .count = least(ForwardScratch::tile_queries, end_query - first),
                             .accumulate = accumulate,
                             .sink = chunk_begin == 0 && op.sinks != nullptr ? op.sinks[head] : -infinity};
      forward_queries<dim, value_dim>(scratch, visible, rows, op.heads.scale, workspace);
    }
  }
}

template <int dim, int value_dim>
inline void attention_forward_of_dim(const AttentionForward& op, const Workspace& workspace) {
  const ForwardScratch scratch(workspace.scratch);
  for (const AttentionBlock& block : op.blocks) {
    for (std::int64_t kv_head = 0; kv_head < op.heads.kv_heads; ++kv_head) {
      std::int64_t begin = 0;
      do {  // runs once without keys, too: such rows are written
        forward_chunk<dim, value_dim>(op, block, kv_head, begin, scratch, workspace);
        begin += ForwardScratch::chunk_keys;
      } while (begin < block.keys);
    }
  }
}

inline void attention_forward(const AttentionForward& op, const Workspace& workspace) {
  switch (op.heads.dim) {
    case 64:
      return attention_forward_of_dim<64, 64>(op, workspace);
    case 128:
      return attention_forward_of_dim<128, 128>(op, workspace);
    case 192:
      return attention_forward_of_dim<192, 128>(op, workspace);
    default:
      return attention_forward_of_dim<256, 256>(op, workspace);
  }
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
