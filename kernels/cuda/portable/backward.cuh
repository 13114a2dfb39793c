#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/bf16.h"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/cuda/portable/fragments.cuh"
#include "kernels/cuda/portable/query_rows.cuh"
#include "kernels/cuda/portable/softmax.cuh"
#include "kernels/cuda/portable/work_queue.cuh"

// Attention backward by mma.sync and cp.async, after FlashAttention-2 (Dao 2023).
//
// A thread block owns 128 key rows of one key-value head and walks over the queries that see them, of all query heads
// that share the head (or of a part of these). K and V stay in shared memory, dK and dV in registers; Q and dO come
// in behind the products, a step ahead. Eight warps share out each of the five products; P and dS pass through shared
// memory, as every warp needs parts that others computed. dQ is added to global memory, where thread blocks meet in no
// order: the one result that differs in its last bits from run to run. A deterministic caller leaves it out and
// computes it by query_gradient.cuh.
namespace hdpsim::kernels::cuda::portable {

/// How warps share out a product: `down` x `right` of them, each with m x n tiles of 16 x 8.
template <int rows, int columns, int warps_down, int warps_right>
struct WarpGrid {
  static constexpr int m = rows / warps_down / 16;
  static constexpr int n = columns / warps_right / 8;
  [[nodiscard]] static __device__ __forceinline__ int row() { return warp_index() / warps_right * 16 * m; }
  [[nodiscard]] static __device__ __forceinline__ int column() { return warp_index() % warps_right * 8 * n; }
};

template <int head_dim>
struct BackwardShape {
  static constexpr int dim = head_dim;
  static constexpr int queries = dim == 64 ? 128 : 64;
  static constexpr int keys = 128;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  using Scores = WarpGrid<queries, keys, queries / 32, warps * 32 / queries>;
  using KeyGradient = WarpGrid<keys, dim, 4, 2>;
  using QueryGradient = WarpGrid<queries, dim, queries / 32, warps * 32 / queries>;

  static constexpr std::uint32_t key_bytes = keys * dim * 2;
  static constexpr std::uint32_t query_bytes = queries * dim * 2;
  static constexpr std::uint32_t score_bytes = queries * keys * 2;
  static constexpr std::uint32_t statistic_bytes = queries * 4;
  static constexpr std::uint32_t shared_bytes = 2 * key_bytes + 4 * query_bytes + 2 * score_bytes + 4 * statistic_bytes;
};

/// Layout of shared memory. Tensors of the queries have two places, for even and odd steps.
template <class Shape>
struct BackwardMemory {
  std::uint32_t base;
  [[nodiscard]] __device__ __forceinline__ std::uint32_t k() const { return base; }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t v() const { return base + Shape::key_bytes; }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t q(int place) const {
    return base + 2 * Shape::key_bytes + place * Shape::query_bytes;
  }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t d_o(int place) const { return q(2 + place); }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t p() const { return q(4); }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t d_s() const { return p() + Shape::score_bytes; }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t lse(int place) const {
    return p() + 2 * Shape::score_bytes + place * Shape::statistic_bytes;
  }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t delta(int place) const { return lse(2 + place); }
  [[nodiscard]] __device__ __forceinline__ QueryRows query_rows(int place) const {
    return {q(place), d_o(place), lse(place), delta(place)};
  }
};

/// One tile of keys of one key-value head, or of a part of the query heads that share it.
template <class Shape, bool with_d_q, class LookAhead>
__device__ __forceinline__ void backward_tile(const BackwardArguments& arguments, const WorkItem& work,
                                              const LookAhead& look_ahead) {
  constexpr int dim = Shape::dim;
  using Scores = typename Shape::Scores;
  using KeyGradient = typename Shape::KeyGradient;
  using QueryGradient = typename Shape::QueryGradient;
  const AttentionTile& tile = work.tile;
  const BackwardMemory<Shape> memory{ptx::shared_address(ptx::dynamic_shared())};
  // Functions, so that nothing is kept in registers from the beginning to the end.
  const auto kv_column = [&] { return work.head / arguments.parts * dim; };
  const auto end_head = [&] { return (work.head + 1) * arguments.heads_per_part; };

  copy_rows<Shape::keys, dim, Shape::threads>(memory.k(), arguments.k + tile.key_row * arguments.k_stride + kv_column(),
                                              arguments.k_stride, tile.keys);
  copy_rows<Shape::keys, dim, Shape::threads>(memory.v(), arguments.v + tile.key_row * arguments.v_stride + kv_column(),
                                              arguments.v_stride, tile.keys);
  copy_query_rows<Shape>(arguments, tile, work.head * arguments.heads_per_part, 0, memory.query_rows(0));
  ptx::cp_async_commit();
  look_ahead();

  float d_k[KeyGradient::m][KeyGradient::n][4];
  float d_v[KeyGradient::m][KeyGradient::n][4];
  set_zero(d_k);
  set_zero(d_v);
  // Steps go over the queries of one head after another, so that copies run ahead across heads, too.
  int first = 0;
  int place = 0;
  for (int head = work.head * arguments.heads_per_part; head < end_head();) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // This step's queries are here, and the previous step is finished with its own and with P and dS.
    const bool last_of_head = first + Shape::queries >= tile.queries;
    const int next_head = last_of_head ? head + 1 : head;
    const int next_first = last_of_head ? 0 : first + Shape::queries;
    if (next_head < end_head()) {
      copy_query_rows<Shape>(arguments, tile, next_head, next_first, memory.query_rows(1 - place));
      ptx::cp_async_commit();
    }
    {
      const int row = Scores::row();
      const int column = Scores::column();
      float p[Scores::m][Scores::n][4];
      set_zero(p);
      multiply<dim / 16>(p, Left<dim>(memory.q(place), row, 0), RightTransposed<dim>(memory.k(), column, 0));
      if (tile.seen_keys(first) < Shape::keys || tile.hidden_keys(first + Shape::queries - 1) > 0) {
        hide_unseen<true>(p, tile, first + row, column);
      }
      to_probabilities(p, memory.lse(place), row, arguments.scale_log2);
      float d_s[Scores::m][Scores::n][4];
      set_zero(d_s);
      multiply<dim / 16>(d_s, Left<dim>(memory.d_o(place), row, 0), RightTransposed<dim>(memory.v(), column, 0));
      to_score_gradients(d_s, p, memory.delta(place), row);
      store_rounded<Shape::keys>(memory.p(), row, column, p);
      store_rounded<Shape::keys>(memory.d_s(), row, column, d_s);
    }
    __syncthreads();  // P and dS are complete.
    if constexpr (with_d_q) {
      const int row = QueryGradient::row();
      const int column = QueryGradient::column();
      float d_q[QueryGradient::m][QueryGradient::n][4];
      set_zero(d_q);
      multiply<Shape::keys / 16>(d_q, Left<Shape::keys>(memory.d_s(), row, 0), Right<dim>(memory.k(), 0, column));
      add_rows(arguments.d_q + (tile.query_row + first) * arguments.d_q_stride + head * dim, arguments.d_q_stride, row,
               column, tile.queries - first, d_q, arguments.scale);
    }
    multiply<Shape::queries / 16>(d_v, LeftTransposed<Shape::keys>(memory.p(), 0, KeyGradient::row()),
                                  Right<dim>(memory.d_o(place), 0, KeyGradient::column()));
    multiply<Shape::queries / 16>(d_k, LeftTransposed<Shape::keys>(memory.d_s(), 0, KeyGradient::row()),
                                  Right<dim>(memory.q(place), 0, KeyGradient::column()));
    head = next_head;
    first = next_first;
    place = 1 - place;
  }
  // Added by reduction without a return value, which is faster than read, add and write, and exact because one block
  // owns the rows.
  add_rows(arguments.d_k + tile.key_row * arguments.d_k_stride + kv_column(), arguments.d_k_stride, KeyGradient::row(),
           KeyGradient::column(), tile.keys, d_k, arguments.scale);
  add_rows(arguments.d_v + tile.key_row * arguments.d_v_stride + kv_column(), arguments.d_v_stride, KeyGradient::row(),
           KeyGradient::column(), tile.keys, d_v, 1);
}

/// Grid: any number of blocks; Shape::threads threads; Shape::shared_bytes of shared memory. Key tiles of Shape::keys
/// rows.
template <class Shape, bool with_d_q>
__global__ void __launch_bounds__(Shape::threads, 1)
    attention_backward(const __grid_constant__ BackwardArguments arguments) {
  for_each_item(arguments.queue, [&](const WorkItem& work, const auto& look_ahead) {
    backward_tile<Shape, with_d_q>(arguments, work, look_ahead);
  });
}

}  // namespace hdpsim::kernels::cuda::portable
