#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/hopper/hopper_arguments.h"
#include "kernels/cuda/hopper/matrix.cuh"
#include "kernels/cuda/portable/softmax.cuh"
#include "kernels/cuda/portable/work_queue.cuh"

// Attention backward for Hopper, after FlashAttention-3 (Shah et al. 2024).
//
// A thread block owns 128 keys of one key-value head and walks the queries that see them, head after head of the group.
// Two warpgroups own 64 keys each: their dK and dV stay in registers. Scores and their gradients are computed
// transposed, [keys, queries], so that P^T and dS^T, rounded, are left operands in registers of dV += P^T dO and dK +=
// dS^T Q. dS^T also goes to shared memory, where dQ = dS K finds it, which needs all 128 keys: the warpgroups share out
// its rows or columns, and the copy engine adds what each has to global memory.
namespace hdpsim::kernels::cuda::hopper {

template <int head_dim>
struct BackwardShape {
  static constexpr int dim = head_dim;
  static constexpr int consumers = 2;  ///< Warpgroups.
  static constexpr int keys = 64 * consumers;
  static constexpr int queries = dim == 64 ? 128 : 64;
  static constexpr int stages = 2;
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int producer_registers = 40;
  static constexpr int consumer_registers = 232;
};

/// Shared memory of the backward kernel.
template <class Shape>
struct BackwardShared {
  using K = Panels<Shape::keys, Shape::dim>;
  using Q = Panels<Shape::queries, Shape::dim>;
  using S = Panels<Shape::keys, Shape::queries>;  ///< dS^T; two of them alternate.
  static constexpr std::uint32_t d_q_box_bytes = 64 * 128;
  static constexpr std::uint32_t d_q_bytes = 2 * d_q_box_bytes;  ///< fp32 [64, 64] of one warpgroup, as two boxes.

  struct Bookkeeping {
    std::uint64_t kv_full, kv_empty;
    std::uint64_t q_full[Shape::stages], d_o_full[Shape::stages], empty[Shape::stages];
    portable::WorkItem work[2];
    float lse[Shape::stages][Shape::queries];  ///< Times log2 e; infinity for rows whose P is 0.
    float delta[Shape::stages][Shape::queries];
  };
  static constexpr std::uint32_t v_begin = K::bytes;
  static constexpr std::uint32_t q_begin = v_begin + K::bytes;
  static constexpr std::uint32_t d_o_begin = q_begin + Shape::stages * Q::bytes;
  static constexpr std::uint32_t d_s_begin = d_o_begin + Shape::stages * Q::bytes;
  static constexpr std::uint32_t d_q_begin = d_s_begin + 2 * S::bytes;
  static constexpr std::uint32_t bookkeeping_begin = d_q_begin + Shape::consumers * d_q_bytes;
  static constexpr std::uint32_t bytes = bookkeeping_begin + sizeof(Bookkeeping);

  std::uint32_t base = ptx::shared_address(ptx::dynamic_shared());
  Bookkeeping& book = *reinterpret_cast<Bookkeeping*>(ptx::dynamic_shared() + bookkeeping_begin);

  [[nodiscard]] __device__ __forceinline__ K k() const { return {base}; }
  [[nodiscard]] __device__ __forceinline__ K v() const { return {base + v_begin}; }
  [[nodiscard]] __device__ __forceinline__ Q q(std::uint32_t stage) const {
    return {base + q_begin + stage * Q::bytes};
  }
  [[nodiscard]] __device__ __forceinline__ Q d_o(std::uint32_t stage) const {
    return {base + d_o_begin + stage * Q::bytes};
  }
  [[nodiscard]] __device__ __forceinline__ S d_s(std::uint32_t which) const {
    return {base + d_s_begin + which * S::bytes};
  }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t d_q(int consumer) const {
    return base + d_q_begin + consumer * d_q_bytes;
  }
};

/// Numbers of barriers of threads.
inline constexpr int all_consumers_meet = 1;
inline constexpr int first_consumer_meets = 2;

/// The statistics of a tile's queries from `first` on, by a warp: make(value) for those that exist, `otherwise` for the
/// rest.
template <int count, class Make>
__device__ __forceinline__ void load_statistics(float* to, const float* from, int first, int exist, float otherwise,
                                                const Make& make) {
#pragma unroll
  for (int i = 0; i < count; i += 32) {
    const int query = i + lane_index();
    to[query] = first + query < exist ? make(from[first + query]) : otherwise;
  }
}

/// The work of the producer warp: it fetches work, starts copies and loads the statistics of the rows.
template <class Shape>
struct BackwardProducer {
  const BackwardArguments& arguments;
  BackwardShared<Shape> shared;
  RingPlace<Shape::stages> place;

  __device__ __forceinline__ void load_queries(const AttentionTile& tile, int head, int first) {
    auto& book = shared.book;
    const std::uint32_t stage = place.stage;
    const std::int64_t statistics = head * arguments.common.lse_stride + tile.query_row;
    const int row = tile.query_row + first;
    await(book.empty[stage], place.parity ^ 1U);
    if (lane_index() == 0) load_panels(shared.q(stage), arguments.q, head * Shape::dim, row, book.q_full[stage]);
    load_statistics<Shape::queries>(
        book.lse[stage], arguments.common.lse + statistics, first, tile.queries, portable::infinity,
        [](float lse) { return lse == -portable::infinity ? portable::infinity : lse * portable::log2_of_e; });
    arrive_of_warp(book.q_full[stage]);
    if (lane_index() == 0) {
      load_panels(shared.d_o(stage), arguments.d_o, head * Shape::dim, row, book.d_o_full[stage]);
    }
    load_statistics<Shape::queries>(book.delta[stage], arguments.common.delta + statistics, first, tile.queries, 0.0F,
                                    [](float delta) { return delta; });
    arrive_of_warp(book.d_o_full[stage]);
    place.advance();
  }

  __device__ __forceinline__ void run() {
    auto& book = shared.book;
    RingPlace<2> slot;
    RingPlace<1> kv_place;
    int item = static_cast<int>(blockIdx.x);
    for (;; slot.advance(), kv_place.advance()) {
      portable::WorkItem work = {};
      portable::look_up(arguments.common.queue, item, work);
      await(book.kv_empty, kv_place.parity ^ 1U);
      if (lane_index() == 0) {
        book.work[slot.stage] = work;
        if (work.exists) {
          const int column = work.head / arguments.common.parts * Shape::dim;
          load_panels(shared.k(), arguments.k, column, work.tile.key_row, book.kv_full);
          load_panels(shared.v(), arguments.v, column, work.tile.key_row, book.kv_full);
          item = static_cast<int>(gridDim.x) + ptx::fetch_add(arguments.common.queue.taken, 1);
        } else {
          ptx::mbarrier_arrive(barrier_address(book.kv_full));
          ptx::mbarrier_arrive(barrier_address(book.kv_full));
        }
      }
      if (!work.exists) return;
      item = ptx::shuffle(item, 0);
      const int first_head = work.head * arguments.common.heads_per_part;
      for (int head = first_head; head < first_head + arguments.common.heads_per_part; ++head) {
        for (int first = 0; first < work.tile.queries; first += Shape::queries) load_queries(work.tile, head, first);
      }
    }
  }
};

/// A column that no accumulator has.
inline constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();

/// Keys and queries that do not see each other get scores of -inf. `key` is the warp's first, `query` the first
/// column's, within the tile.
template <int n>
__device__ __forceinline__ void hide_unseen_transposed(float (&scores)[n][4], const AttentionTile& tile, int key,
                                                       int query) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = key + lane_row() + 8 * half;
    // Query i of the tile sees first_query_keys + i keys, and no more than there are.
    const int seen_from = row >= tile.keys ? never : row + 1 - tile.first_query_keys - query - lane_column();
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (8 * j + e < seen_from) scores[j][2 * half + e] = -portable::infinity;
      }
    }
  }
}

struct alignas(8) ColumnPair {
  float value[2];
};
/// Statistics of the columns that the lane holds: [4 j] are those of 8 j + lane_column() and the next one.
[[nodiscard]] __device__ __forceinline__ const ColumnPair* columns(const float* statistics) {
  return reinterpret_cast<const ColumnPair*>(statistics + lane_column());
}

template <class Shape>
struct BackwardConsumer {
  const BackwardArguments& arguments;
  BackwardShared<Shape> shared;
  int consumer;  ///< 0 or 1.
  RingPlace<Shape::stages> place;
  std::uint32_t d_s_now;  ///< The current one of the two.

  float d_k[1][Shape::dim / 8][4];
  float d_v[1][Shape::dim / 8][4];

  [[nodiscard]] __device__ __forceinline__ int first_key() const { return 64 * consumer; }
  __device__ __forceinline__ void meet() const { ptx::barrier_sync(first_consumer_meets + consumer, 128); }

  /// Rows behind the documents' ends are zeroed, so that their contents add nothing.
  __device__ __forceinline__ void clear_keys(const AttentionTile& tile) const {
    if (tile.keys == Shape::keys) return;
    zero_rows(shared.k(), tile.keys);
    zero_rows(shared.v(), tile.keys);
    meet();
  }
  __device__ __forceinline__ void clear_queries(int exist) const {
    if (exist >= Shape::queries) return;
    await(shared.book.d_o_full[place.stage], place.parity);
    zero_rows(shared.q(place.stage), exist);
    zero_rows(shared.d_o(place.stage), exist);
    meet();
  }

  __device__ __forceinline__ void to_probabilities(float (&scores)[Shape::queries / 8][4]) const {
    const ColumnPair* const lse = columns(shared.book.lse[place.stage]);
#pragma unroll
    for (int j = 0; j < Shape::queries / 8; ++j) {
      const ColumnPair shift = lse[4 * j];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[j][e] = ptx::exp2(fmaf(scores[j][e], arguments.common.scale_log2, -shift.value[e % 2]));
      }
    }
  }
  /// dS = P (dP - delta), rounded. P comes rounded, too, so that it takes half the registers.
  __device__ __forceinline__ void to_score_gradients(std::uint32_t (&d_s)[Shape::queries / 16][4],
                                                     const std::uint32_t (&p)[Shape::queries / 16][4],
                                                     const float (&d_p)[Shape::queries / 8][4]) const {
    const ColumnPair* const delta = columns(shared.book.delta[place.stage]);
#pragma unroll
    for (int j = 0; j < Shape::queries / 8; ++j) {
      const ColumnPair of_row = delta[4 * j];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t pair = p[j / 2][j % 2 * 2 + half];
        d_s[j / 2][j % 2 * 2 + half] = ptx::pack_bf16(ptx::low_bf16(pair) * (d_p[j][2 * half] - of_row.value[0]),
                                                      ptx::high_bf16(pair) * (d_p[j][2 * half + 1] - of_row.value[1]));
      }
    }
  }
  __device__ __forceinline__ void publish_score_gradients(const std::uint32_t (&d_s)[Shape::queries / 16][4]) const {
    const int lane = lane_index();
    const std::uint32_t first =
        shared.d_s(d_s_now).chunk(first_key() + 16 * warp_of_group() + lane % 16, lane / 16 * 8);
#pragma unroll
    for (int k = 0; k < Shape::queries / 16; ++k) {
      ptx::store_matrix_for_async(BackwardShared<Shape>::S::moved(first, 2 * k), d_s[k]);
    }
    ptx::fence_async();
  }

  /// Adds scale d_q to the warpgroup's 64 x 64 part of the query gradient, which begins at `row` of the packed tensor
  /// and `column` of it.
  __device__ __forceinline__ void add_query_gradient(const float (&d_q)[8][4], int row, int column) const {
    const bool first_thread = thread_index() % 128 == 0;
    if (first_thread) ptx::wait_for_boxes_read();
    meet();
    const float scale = arguments.common.scale;
    // In a box of 32 columns, chunk c (four columns) of row r lies at place c ^ (r % 8).
    const int lane = lane_index();
    const std::uint32_t first = shared.d_q(consumer) + (16 * warp_of_group() + lane / 4) * 128 +
                                ((lane % 4 / 2) ^ (lane / 4)) * 16 + lane % 2 * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::uint32_t tile = (first ^ (j % 4 * 32U)) + j / 4 * BackwardShared<Shape>::d_q_box_bytes;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        ptx::store8_for_async(tile + half * 1024, d_q[j][2 * half] * scale, d_q[j][2 * half + 1] * scale);
      }
    }
    ptx::fence_async();
    meet();
    if (first_thread) {
#pragma unroll
      for (int box = 0; box < 2; ++box) {
        ptx::add_box(arguments.d_q, column + 32 * box, row,
                     shared.d_q(consumer) + box * BackwardShared<Shape>::d_q_box_bytes);
      }
      ptx::commit_boxes();
    }
  }

  /// One step: queries [first, first + Shape::queries) of the tile, for one head.
  __device__ __forceinline__ void step(const AttentionTile& tile, int head, int first);
};

template <class Shape>
__device__ __forceinline__ void BackwardConsumer<Shape>::step(const AttentionTile& tile, int head, int first) {
  constexpr int n = Shape::queries / 8;
  float scores[n][4];
  float d_p[n][4];
  float d_q[8][4];
  std::uint32_t p[n / 2][4];
  std::uint32_t d_s[n / 2][4];
  const std::uint32_t stage = place.stage;

  await(shared.book.q_full[stage], place.parity);
  clear_queries(tile.queries - first);
  ptx::wgmma_fence(scores);
  multiply_rows_by_rows(scores, shared.k(), first_key(), shared.q(stage));
  ptx::wgmma_commit();
  await(shared.book.d_o_full[stage], place.parity);
  ptx::wgmma_fence(d_p);
  multiply_rows_by_rows(d_p, shared.v(), first_key(), shared.d_o(stage));
  ptx::wgmma_commit();

  ptx::wgmma_wait<1>(scores);
  if (tile.keys < Shape::keys || tile.seen_keys(first) < Shape::keys) {
    hide_unseen_transposed(scores, tile, first_key() + 16 * warp_of_group(), first);
  }
  to_probabilities(scores);
  round_to_operand(p, scores);
  std::uint32_t p_of_product[n / 2][4];  // A product's registers may not even be read until it is done.
  copy_operand(p_of_product, p);
  ptx::wgmma_fence(d_v[0], p_of_product);
  multiply_registers_by_columns(d_v[0], p_of_product, shared.d_o(stage));
  ptx::wgmma_commit();

  ptx::wgmma_wait<1>(d_p);
  to_score_gradients(d_s, p, d_p);
  publish_score_gradients(d_s);
  ptx::barrier_sync(all_consumers_meet, 128 * Shape::consumers);

  // A warpgroup computes 64 rows of dQ [queries, dim] if there are 128, else 64 columns.
  const int d_q_row = Shape::queries == 128 ? 64 * consumer : 0;
  const int d_q_column = Shape::queries == 128 ? 0 : 64 * consumer;
  ptx::wgmma_fence(d_q);
  multiply_columns_by_columns(d_q, shared.d_s(d_s_now), d_q_row, shared.k(), d_q_column);
  ptx::wgmma_commit();
  ptx::wgmma_fence(d_k[0], d_s);
  multiply_registers_by_columns(d_k[0], d_s, shared.q(stage));
  ptx::wgmma_commit();

  ptx::wgmma_wait<1>(d_v[0], p_of_product, d_q);
  add_query_gradient(d_q, tile.query_row + first + d_q_row, head * Shape::dim + d_q_column);
  ptx::wgmma_wait<0>(d_k[0], d_s);
  arrive_of_warp(shared.book.empty[stage]);
  d_s_now ^= 1U;
  place.advance();
}

template <class Shape>
__device__ __forceinline__ void consume_backward(const BackwardArguments& arguments, int consumer) {
  BackwardConsumer<Shape> self{arguments, {}, consumer, {}, 0, {}, {}};
  auto& book = self.shared.book;
  RingPlace<2> slot;
  RingPlace<1> kv_place;
  for (;; slot.advance(), kv_place.advance()) {
    await(book.kv_full, kv_place.parity);
    const portable::WorkItem& work = book.work[slot.stage];
    if (uniform(work.exists ? 1 : 0) == 0) break;
    portable::set_zero(self.d_k);
    portable::set_zero(self.d_v);
    self.clear_keys(work.tile);
    const int first_head = uniform(work.head) * arguments.common.heads_per_part;
    const int queries = uniform(work.tile.queries);
    for (int head = first_head; head < first_head + arguments.common.heads_per_part; ++head) {
      for (int first = 0; first < queries; first += Shape::queries) self.step(work.tile, head, first);
    }
    arrive_of_warp(book.kv_empty);
    const int row = self.first_key() + 16 * warp_of_group();
    const int column = work.head / arguments.common.parts * Shape::dim;
    const std::int64_t key_row = work.tile.key_row;
    portable::add_rows(arguments.common.d_k + key_row * arguments.common.d_k_stride, arguments.common.d_k_stride, row,
                       column, work.tile.keys, self.d_k, arguments.common.scale);
    portable::add_rows(arguments.common.d_v + key_row * arguments.common.d_v_stride, arguments.common.d_v_stride, row,
                       column, work.tile.keys, self.d_v, 1.0F);
  }
  if (thread_index() % 128 == 0) ptx::wait_for_boxes();
}

template <class Shape>
__device__ __forceinline__ void prepare_backward() {
  const BackwardShared<Shape> shared;
  auto& book = shared.book;
  constexpr std::uint32_t consumer_warps = 4 * Shape::consumers;
  ptx::mbarrier_init(barrier_address(book.kv_full), 2);
  ptx::mbarrier_init(barrier_address(book.kv_empty), consumer_warps);
  for (int stage = 0; stage < Shape::stages; ++stage) {
    ptx::mbarrier_init(barrier_address(book.q_full[stage]), 2);  // what is copied, and what is stored
    ptx::mbarrier_init(barrier_address(book.d_o_full[stage]), 2);
    ptx::mbarrier_init(barrier_address(book.empty[stage]), consumer_warps);
  }
  ptx::fence_mbarrier_init();
}

/// What kernels/spec/attention.h says of AttentionBackward, of bf16 tensors and fp32 gradients. The order in which dQ
/// is added up, and dK and dV where a group of heads is computed in parts, differs from run to run.
///
/// Grid: any number of blocks, which take work items from a queue; Shape::threads threads; BackwardShared<Shape>::bytes
/// of shared memory, so one block per multiprocessor. Work: 10 dim FLOP for each query and key that see each other, and
/// for what pads their tiles to Shape::queries x Shape::keys. Traffic: K, V and their gradients once a part of the
/// heads; Q, dO and dQ once for each tile of keys, in the last-level cache if all goes well. Accuracy: P and dS are
/// rounded to bf16 before they are multiplied, P also before dS is made from it; everything else is fp32.
template <class Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    attention_backward(const __grid_constant__ BackwardArguments arguments) {
  static_assert(registers_suffice<Shape> && BackwardShared<Shape>::bytes <= most_shared_bytes);
  if (threadIdx.x == 0) prepare_backward<Shape>();
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::give_registers_back<Shape::producer_registers>();
    if (threadIdx.x < 32) BackwardProducer<Shape>{arguments, {}, {}}.run();
  } else {
    ptx::take_registers<Shape::consumer_registers>();
    consume_backward<Shape>(arguments, uniform(static_cast<int>(threadIdx.x) / 128 - 1));
  }
}

}  // namespace hdpsim::kernels::cuda::hopper
