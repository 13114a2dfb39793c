#pragma once

#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/bf16.h"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/cuda/portable/fragments.cuh"
#include "kernels/cuda/portable/query_rows.cuh"
#include "kernels/cuda/portable/softmax.cuh"
#include "kernels/cuda/portable/work_queue.cuh"

// dQ alone, in a fixed order of additions: what the deterministic backward computes in addition to the gradients of keys and
// values, at the price of computing S and dP a second time (7 products instead of 5).
//
// A thread block owns 128 query rows of one head and walks over the keys that they see; a warp owns 16 rows. Q, dO and
// dQ stay, K and V come in behind the products, a step ahead. dS goes from accumulators straight into the product.
namespace hdpsim::kernels::cuda::portable {

template <int head_dim>
struct QueryGradientShape {
  static constexpr int dim = head_dim;
  static constexpr int queries = 128;
  static constexpr int keys = 64;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr std::uint32_t query_bytes = queries * dim * 2;
  static constexpr std::uint32_t key_bytes = keys * dim * 2;
  static constexpr std::uint32_t statistic_bytes = queries * 4;
  static constexpr std::uint32_t shared_bytes = 2 * query_bytes + 4 * key_bytes + 2 * statistic_bytes;
};

template <class Shape, class LookAhead>
__device__ __forceinline__ void query_gradient_tile(const BackwardArguments& arguments, const WorkItem& work,
                                                    const LookAhead& look_ahead) {
  constexpr int dim = Shape::dim;
  const AttentionTile& tile = work.tile;
  const std::uint32_t shared_q = ptx::shared_address(ptx::dynamic_shared());
  const std::uint32_t shared_d_o = shared_q + Shape::query_bytes;
  const std::uint32_t shared_k = shared_d_o + Shape::query_bytes;
  const std::uint32_t shared_v = shared_k + 2 * Shape::key_bytes;
  const std::uint32_t lse = shared_v + 2 * Shape::key_bytes;
  const std::uint32_t delta = lse + Shape::statistic_bytes;
  const auto copy_keys = [&](int place, int first) {
    const std::int64_t row = tile.key_row + first;
    const int column = work.head / (arguments.parts * arguments.heads_per_part) * dim;
    copy_rows<Shape::keys, dim, Shape::threads>(shared_k + place * Shape::key_bytes,
                                                arguments.k + row * arguments.k_stride + column, arguments.k_stride,
                                                tile.keys - first);
    copy_rows<Shape::keys, dim, Shape::threads>(shared_v + place * Shape::key_bytes,
                                                arguments.v + row * arguments.v_stride + column, arguments.v_stride,
                                                tile.keys - first);
    ptx::cp_async_commit();
  };

  if (tile.keys > 0) {
    copy_query_rows<Shape>(arguments, tile, work.head, 0, {shared_q, shared_d_o, lse, delta});
    copy_keys(0, 0);
  }
  look_ahead();

  const int row = warp_index() * 16;
  float d_q[1][dim / 8][4];
  set_zero(d_q);
  int place = 0;
  for (int first = 0; first < tile.keys; first += Shape::keys) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // This step's keys are here, and the previous step is finished with its own.
    if (first + Shape::keys < tile.keys) copy_keys(1 - place, first + Shape::keys);
    const std::uint32_t k = shared_k + place * Shape::key_bytes;
    const std::uint32_t v = shared_v + place * Shape::key_bytes;
    float p[1][Shape::keys / 8][4];
    set_zero(p);
    multiply<dim / 16>(p, Left<dim>(shared_q, row, 0), RightTransposed<dim>(k, 0, 0));
    if (tile.seen_keys(0) < first + Shape::keys || tile.hidden_keys(tile.queries - 1) > first) {
      hide_unseen<true>(p, tile, row, first);
    }
    to_probabilities(p, lse, row, arguments.scale_log2);
    float d_s[1][Shape::keys / 8][4];
    set_zero(d_s);
    multiply<dim / 16>(d_s, Left<dim>(shared_d_o, row, 0), RightTransposed<dim>(v, 0, 0));
    to_score_gradients(d_s, p, delta, row);
    multiply<Shape::keys / 16>(d_q, LeftRegisters<1, Shape::keys / 16>(d_s), Right<dim>(k, 0, 0));
    place = 1 - place;
  }
  add_rows(arguments.d_q + tile.query_row * arguments.d_q_stride + work.head * dim, arguments.d_q_stride, row, 0,
           tile.queries, d_q, arguments.scale);
}

/// Grid: any number of blocks; Shape::threads threads; Shape::shared_bytes of shared memory. The queue holds query
/// tiles of Shape::queries rows and query heads.
template <class Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    attention_query_gradient(const __grid_constant__ BackwardArguments arguments) {
  for_each_item(arguments.queue, [&](const WorkItem& work, const auto& look_ahead) {
    query_gradient_tile<Shape>(arguments, work, look_ahead);
  });
}

}  // namespace hdpsim::kernels::cuda::portable
