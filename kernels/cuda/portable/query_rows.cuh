#pragma once

#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/cuda/portable/fragments.cuh"

namespace hdpsim::kernels::cuda::portable {

/// Places in shared memory of the query rows' tensors that backward needs: Q and dO as SwizzledRows, LSE and delta in
/// fp32.
struct QueryRows {
  std::uint32_t q, d_o, lse, delta;
};

/// Starts the copy of rows [first, first + Shape::queries) of the tile, of one head; leaves the group of copies open.
/// Rows beyond the tile are zeros.
template <class Shape>
__device__ __forceinline__ void copy_query_rows(const BackwardArguments& arguments, const AttentionTile& tile, int head,
                                                int first, const QueryRows& to) {
  const std::int64_t row = tile.query_row + first;
  const int valid = tile.queries - first;
  copy_rows<Shape::queries, Shape::dim, Shape::threads>(
      to.q, arguments.q + row * arguments.q_stride + head * Shape::dim, arguments.q_stride, valid);
  copy_rows<Shape::queries, Shape::dim, Shape::threads>(
      to.d_o, arguments.d_o + row * arguments.d_o_stride + head * Shape::dim, arguments.d_o_stride, valid);
  static_assert(Shape::queries <= Shape::threads);
  const int thread = thread_index();
  if (thread < Shape::queries) {
    const std::int64_t at = head * arguments.lse_stride + row + thread;
    ptx::cp_async_4(to.lse + thread * 4, arguments.lse + at, thread < valid);
    ptx::cp_async_4(to.delta + thread * 4, arguments.delta + at, thread < valid);
  }
}

}  // namespace hdpsim::kernels::cuda::portable
