#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/hopper/tensor_map.h"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/spec/attention.h"

/// The arguments of the Hopper kernels, and how they follow from a caller's operation. Plain C++. `encode` makes a
/// TensorMap from a TensorShape: it is the driver's, or the emulator's.
namespace hdpsim::kernels::cuda::hopper {

struct ForwardArguments {
  portable::ForwardArguments common;
  ptx::TensorMap q, k, v;  ///< Boxes of Shape::queries or Shape::keys rows.
};

struct BackwardArguments {
  portable::BackwardArguments common;
  ptx::TensorMap q, k, v, d_o;  ///< Boxes of Shape::queries or Shape::keys rows.
  ptx::TensorMap d_q;           ///< Boxes of 64 rows.
};

/// Rows of the packed tensors up to the end of the last document.
struct Extents {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
};
[[nodiscard]] inline Extents extents(std::span<const AttentionBlock> blocks) {
  Extents rows;
  for (const AttentionBlock& block : blocks) {
    if (block.queries > 0) rows.queries = std::max(rows.queries, block.query_begin + block.queries);
    if (block.keys > 0) rows.keys = std::max(rows.keys, block.key_begin + block.keys);
  }
  return rows;
}

/// An empty map if there are no rows: such a tensor may have no memory.
template <class T, class Encode>
[[nodiscard]] ptx::TensorMap map_of(const Rows<T>& tensor, std::int64_t rows, std::int64_t columns, int box_rows,
                                    int element_bytes, const Encode& encode) {
  if (rows == 0) return {};
  return encode(TensorShape{.data = tensor.data,
                            .row_stride = tensor.stride,
                            .columns = static_cast<std::int32_t>(columns),
                            .rows = static_cast<std::int32_t>(rows),
                            .box_rows = box_rows,
                            .element_bytes = element_bytes});
}

/// UnsupportedInput for windows, which the portable kernels know.
inline void require_no_window(std::span<const AttentionBlock> blocks) {
  if (std::any_of(blocks.begin(), blocks.end(), [](const AttentionBlock& block) { return block.window > 0; })) {
    throw UnsupportedInput("attention: kernels for Hopper know no windows yet; the portable ones do");
  }
}

template <class Shape, class Encode>
[[nodiscard]] ForwardArguments forward_arguments(const AttentionForward& op, const portable::WorkQueue& queue,
                                                 const Encode& encode) {
  require_no_window(op.blocks);
  const Extents rows = extents(op.blocks);
  const std::int64_t columns = op.heads.heads * op.heads.dim;
  const std::int64_t kv_columns = op.heads.kv_heads * op.heads.dim;
  return {.common = portable::forward_arguments(op, queue),
          .q = map_of(op.q, rows.queries, columns, Shape::queries, 2, encode),
          .k = map_of(op.k, rows.keys, kv_columns, Shape::keys, 2, encode),
          .v = map_of(op.v, rows.keys, kv_columns, Shape::keys, 2, encode)};
}

/// For `parts` see portable::backward_arguments.
template <class Shape, class Encode>
[[nodiscard]] BackwardArguments backward_arguments(const AttentionBackward& op, const portable::WorkQueue& queue,
                                                   std::int64_t parts, const Encode& encode) {
  require_no_window(op.blocks);
  portable::require_aligned(op.d_q, 4, sizeof(float), "attention: rows of d_q must begin at multiples of 16 bytes");
  const Extents rows = extents(op.blocks);
  const std::int64_t columns = op.heads.heads * op.heads.dim;
  const std::int64_t kv_columns = op.heads.kv_heads * op.heads.dim;
  BackwardArguments arguments{.common = portable::backward_arguments(op, parts),
                              .q = map_of(op.q, rows.queries, columns, Shape::queries, 2, encode),
                              .k = map_of(op.k, rows.keys, kv_columns, Shape::keys, 2, encode),
                              .v = map_of(op.v, rows.keys, kv_columns, Shape::keys, 2, encode),
                              .d_o = map_of(op.d_o, rows.queries, columns, Shape::queries, 2, encode),
                              .d_q = map_of(op.d_q, rows.queries, columns, 64, 4, encode)};
  arguments.common.queue = queue;
  return arguments;
}

}  // namespace hdpsim::kernels::cuda::hopper
