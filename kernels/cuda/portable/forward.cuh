#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/bf16.h"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/cuda/portable/fragments.cuh"
#include "kernels/cuda/portable/softmax.cuh"
#include "kernels/cuda/portable/work_queue.cuh"

// Attention forward by mma.sync and cp.async, after FlashAttention-2 (Dao 2023).
//
// A thread block of four warps computes the output of 128 query rows of one head; a warp owns 32 of them, from the
// scores to the output, so that each key or value that it reads from shared memory serves two products. Q stays in
// shared memory. One tile of keys and one of values alternate there: values come in behind the scores, the next keys
// behind the product with the values; a second block of the multiprocessor fills what gaps remain.
// The softmax is the online one, with exp2 of scores scaled by log2 e; max and sum of a row live in the four lanes that
// hold it. P goes from the accumulator of the first product straight into the left operand of the second.
namespace hdpsim::kernels::cuda::portable {

/// With windows, which take registers, heads of 128 go through fewer keys at once.
template <int head_dim, bool with_windows = false>
struct ForwardShape {
  static constexpr int dim = head_dim;
  static constexpr bool windowed = with_windows;
  static constexpr int queries = 128;
  static constexpr int keys = dim == 64 ? 128 : windowed ? 32 : 64;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int m = queries / warps / 16;  ///< Accumulator tiles of a warp, down.
  static constexpr int blocks_per_multiprocessor = 2;
  static constexpr std::uint32_t q_bytes = queries * dim * 2;
  static constexpr std::uint32_t k_bytes = keys * dim * 2;
  static constexpr std::uint32_t shared_bytes = q_bytes + 2 * k_bytes;
};

/// Two neighbours in global memory.
struct alignas(8) FloatPair {
  float first, second;
};

/// Merges (o, lse base 2) of a warp's rows, from `row` of the tile on, into what global memory holds over other keys;
/// see AttentionForward::accumulate.
template <int m, int dim8>
__device__ __forceinline__ void merge_output(const ForwardArguments& arguments, const AttentionTile& tile, int head,
                                             int row, const float (&o)[m][dim8][4], const RowStatistics<m>& rows) {
  row += lane_row();
  float* const global_lse = arguments.lse + head * arguments.lse_stride + tile.query_row + row;
  float old_lse[m][2];
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int below = 16 * i + 8 * half;
      old_lse[i][half] = row + below < tile.queries ? global_lse[below] : -infinity;
    }
  }
  __syncwarp();  // Four lanes have read what one of them overwrites.
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int below = 16 * i + 8 * half;
      const float lse = rows.sum[i][half] * log_of_2;
      if (row + below >= tile.queries || lse == -infinity) continue;
      const float merged = fmaxf(old_lse[i][half], lse) + log1pf(expf(-fabsf(old_lse[i][half] - lse)));
      const float old_factor = expf(old_lse[i][half] - merged);
      const float factor = expf(lse - merged);
      float* const global_o = static_cast<float*>(arguments.o) + (tile.query_row + row + below) * arguments.o_stride +
                              head * 8 * dim8 + lane_column();
#pragma unroll
      for (int j = 0; j < dim8; ++j) {
        FloatPair& pair = *reinterpret_cast<FloatPair*>(global_o + 8 * j);
        pair = {pair.first * old_factor + o[i][j][2 * half] * factor,
                pair.second * old_factor + o[i][j][2 * half + 1] * factor};
      }
      if (lane_column() == 0) global_lse[below] = merged;
    }
  }
}

/// Writes o, in bf16, and lse of a warp's rows, from `row` of the tile on. Goes through the warp's own rows of
/// `staging`, rows of dim bf16 in shared memory, to write whole lines.
template <int m, int dim8>
__device__ __forceinline__ void write_output(const ForwardArguments& arguments, const AttentionTile& tile, int head,
                                             int row, const float (&o)[m][dim8][4], const RowStatistics<m>& rows,
                                             std::uint32_t staging) {
  constexpr int dim = 8 * dim8;
  using Layout = SwizzledRows<dim>;
  float* const global_lse = arguments.lse + head * arguments.lse_stride + tile.query_row + row + lane_row();
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int below = 16 * i + 8 * half;
      if (lane_column() == 0 && row + lane_row() + below < tile.queries) {
        global_lse[below] = rows.sum[i][half] * log_of_2;
      }
    }
  }
  __syncwarp();  // The warp has read its rows of Q, which lie where `staging` does.
  store_rounded<dim>(staging, row, 0, o);
  __syncwarp();
  constexpr int rows_at_once = 32 / Layout::chunks;
  const int chunk = lane_index() % Layout::chunks;
  const int first = row + lane_index() / Layout::chunks;
  bf16* const global_o = static_cast<bf16*>(arguments.o) + tile.query_row * arguments.o_stride + head * dim + 8 * chunk;
#pragma unroll
  for (int done = 0; done < 16 * m; done += rows_at_once) {
    const ptx::Vector16 value = ptx::load16_shared(staging + Layout::offset(first + done, chunk));
    if (first + done < tile.queries) ptx::store16(global_o + (first + done) * arguments.o_stride, value);
  }
}

/// One tile of queries of one head. What does not change from step to step is read anew from shared memory or the
/// arguments instead of kept: outputs, scores and fragments need nearly all registers.
template <class Shape, bool accumulate, class LookAhead>
__device__ __forceinline__ void forward_tile(const ForwardArguments& arguments, const WorkItem& work,
                                             const LookAhead& look_ahead) {
  constexpr int m = Shape::m;
  constexpr int dim = Shape::dim;
  const AttentionTile& tile = work.tile;
  const std::uint32_t shared_q = ptx::shared_address(ptx::dynamic_shared());
  const std::uint32_t shared_k = shared_q + Shape::q_bytes;
  const std::uint32_t shared_v = shared_k + Shape::k_bytes;
  const auto copy_keys = [&](std::uint32_t to, const bf16* from, std::int64_t stride, int step) {
    const int first = step * Shape::keys;
    copy_rows<Shape::keys, dim, Shape::threads>(
        to, from + (tile.key_row + first) * stride + work.head / arguments.heads_per_kv_head * dim, stride,
        tile.keys - first);
    ptx::cp_async_commit();
  };

  if (tile.keys > 0) {
    copy_rows<Shape::queries, dim, Shape::threads>(shared_q,
                                                   arguments.q + tile.query_row * arguments.q_stride + work.head * dim,
                                                   arguments.q_stride, tile.queries);
    copy_keys(shared_k, arguments.k, arguments.k_stride, 0);
  }
  look_ahead();

  float o[m][dim / 8][4];
  RowStatistics<m> rows;
  set_zero(o);
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.largest[i][half] = -infinity;
      rows.sum[i][half] = 0;
    }
  }
  for (int step = 0; step * Shape::keys < tile.keys; ++step) {
    const int row = warp_index() * 16 * m;
    ptx::cp_async_wait<0>();
    __syncthreads();  // The keys are here, and the values of the previous step are no longer used.
    copy_keys(shared_v, arguments.v, arguments.v_stride, step);
    float scores[m][Shape::keys / 8][4];
    set_zero(scores);
    multiply<dim / 16>(scores, Left<dim>(shared_q, row, 0), RightTransposed<dim>(shared_k, 0, 0));
    const bool is_cut = Shape::windowed && step * Shape::keys < tile.hidden_keys(tile.queries - 1);
    if (is_cut || (step + 1) * Shape::keys > tile.seen_keys(0)) {
      hide_unseen<Shape::windowed>(scores, tile, row, step * Shape::keys);
    }
    update_softmax(scores, o, rows, arguments.scale_log2);
    ptx::cp_async_wait<0>();
    __syncthreads();  // The values are here, and the keys are no longer used.
    if ((step + 1) * Shape::keys < tile.keys) copy_keys(shared_k, arguments.k, arguments.k_stride, step + 1);
    const LeftRegisters<m, Shape::keys / 16> p(scores);
    multiply<Shape::keys / 16>(o, p, Right<dim>(shared_v, 0, 0));
  }

  finish_softmax(o, rows, arguments.scale_log2);
  const int row = warp_index() * 16 * m;
  if constexpr (accumulate) {
    merge_output(arguments, tile, work.head, row, o, rows);
  } else {
    write_output(arguments, tile, work.head, row, o, rows, shared_q);
  }
}

/// Grid: any number of blocks; Shape::threads threads; Shape::shared_bytes of shared memory.
template <class Shape, bool accumulate>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks_per_multiprocessor)
    attention_forward(const __grid_constant__ ForwardArguments arguments) {
  for_each_item(arguments.queue, [&](const WorkItem& work, const auto& look_ahead) {
    forward_tile<Shape, accumulate>(arguments, work, look_ahead);
  });
}

}  // namespace hdpsim::kernels::cuda::portable
