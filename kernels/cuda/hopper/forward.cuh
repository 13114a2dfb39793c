#pragma once

#include <cstdint>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/hopper/hopper_arguments.h"
#include "kernels/cuda/hopper/matrix.cuh"
#include "kernels/cuda/portable/forward.cuh"
#include "kernels/cuda/portable/work_queue.cuh"

// Attention forward for Hopper, after FlashAttention-3 (Shah et al. 2024).
//
// One warp keeps the copy engine busy; two or three warpgroups compute 64 query rows each of one tile of queries. Keys
// and values travel through rings of buffers. Keys are visited from the last to the first, so that what is masked comes
// first. The scores of one tile of keys are multiplied while the values of the tile before are, and the warpgroups take
// turns at starting products: the softmax of one runs under the products of the other. P stays in registers.
namespace hdpsim::kernels::cuda::hopper {

/// More queries a tile read keys and values less often. Dim 64 leaves registers for three warpgroups; dim 128 needs
/// more a thread than three could have.
template <int head_dim>
struct ForwardShape {
  static constexpr int dim = head_dim;
  static constexpr int consumers = dim == 64 ? 3 : 2;  ///< Warpgroups.
  static constexpr int queries = 64 * consumers;
  static constexpr int keys = 128;
  static constexpr int stages = dim == 64 ? 4 : 2;
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int producer_registers = consumers == 2 ? 40 : 32;
  static constexpr int consumer_registers = consumers == 2 ? 232 : 160;
};

/// Shared memory of the forward kernel.
template <class Shape>
struct ForwardShared {
  using Q = Panels<Shape::queries, Shape::dim>;
  using K = Panels<Shape::keys, Shape::dim>;
  struct Bookkeeping {
    std::uint64_t q_full, q_empty;
    std::uint64_t k_full[Shape::stages], k_empty[Shape::stages], v_full[Shape::stages], v_empty[Shape::stages];
    portable::WorkItem work[2];
  };
  static constexpr std::uint32_t k_begin = Q::bytes;
  static constexpr std::uint32_t v_begin = k_begin + Shape::stages * K::bytes;
  static constexpr std::uint32_t o_begin = v_begin + Shape::stages * K::bytes;
  static constexpr std::uint32_t bookkeeping_begin = o_begin + Q::bytes;  // O is as large as Q
  static constexpr std::uint32_t bytes = bookkeeping_begin + sizeof(Bookkeeping);

  std::uint32_t base = ptx::shared_address(ptx::dynamic_shared());
  Bookkeeping& book = *reinterpret_cast<Bookkeeping*>(ptx::dynamic_shared() + bookkeeping_begin);

  [[nodiscard]] __device__ __forceinline__ Q q() const { return {base}; }
  [[nodiscard]] __device__ __forceinline__ K k(std::uint32_t stage) const {
    return {base + k_begin + stage * K::bytes};
  }
  [[nodiscard]] __device__ __forceinline__ K v(std::uint32_t stage) const {
    return {base + v_begin + stage * K::bytes};
  }
  [[nodiscard]] __device__ __forceinline__ std::uint32_t o() const { return base + o_begin; }
};

/// Barriers of threads, by number. Turns: one for each consumer; so are those at which a consumer meets.
inline constexpr int first_turn = 1;
inline constexpr int first_meeting = 5;

[[nodiscard]] __device__ __forceinline__ int key_steps(const AttentionTile& tile, int keys) {
  return (tile.keys + keys - 1) / keys;
}

/// The work of the producer thread: it fetches work and starts copies.
template <class Shape>
struct ForwardProducer {
  const ForwardArguments& arguments;
  ForwardShared<Shape> shared;
  RingPlace<Shape::stages> k_place, v_place;

  __device__ __forceinline__ void load_keys(int column, int row) {
    await(shared.book.k_empty[k_place.stage], k_place.parity ^ 1U);
    load_panels(shared.k(k_place.stage), arguments.k, column, row, shared.book.k_full[k_place.stage]);
    k_place.advance();
  }
  __device__ __forceinline__ void load_values(int column, int row) {
    await(shared.book.v_empty[v_place.stage], v_place.parity ^ 1U);
    load_panels(shared.v(v_place.stage), arguments.v, column, row, shared.book.v_full[v_place.stage]);
    v_place.advance();
  }
  /// In the order of their use: the keys of each step come before the values of the step before.
  __device__ __forceinline__ void load_keys_and_values(const portable::WorkItem& work) {
    const int column = work.head / arguments.common.heads_per_kv_head * Shape::dim;
    int row = work.tile.key_row + key_steps(work.tile, Shape::keys) * Shape::keys;
    if (row > work.tile.key_row) load_keys(column, row - Shape::keys);
    while (row > work.tile.key_row) {
      row -= Shape::keys;
      if (row > work.tile.key_row) load_keys(column, row - Shape::keys);
      load_values(column, row);
    }
  }

  __device__ __forceinline__ void run() {
    auto& book = shared.book;
    RingPlace<2> slot;
    RingPlace<1> q_place;
    int item = static_cast<int>(blockIdx.x);
    for (;; slot.advance(), q_place.advance()) {
      portable::WorkItem work = {};
      portable::look_up(arguments.common.queue, item, work);
      await(book.q_empty, q_place.parity ^ 1U);
      book.work[slot.stage] = work;  // The item before the last is finished, and the last one is in the other place.
      if (!work.exists || work.tile.keys == 0) {
        ptx::mbarrier_arrive(barrier_address(book.q_full));
      } else {
        load_panels(shared.q(), arguments.q, work.head * Shape::dim, work.tile.query_row, book.q_full);
      }
      if (!work.exists) return;
      item = static_cast<int>(gridDim.x) + ptx::fetch_add(arguments.common.queue.taken, 1);
      load_keys_and_values(work);
    }
  }
};

/// Turns scores into exp2(scale_log2 (score - largest)) and updates the statistics; `correction` is what the output of
/// earlier keys is to be multiplied by, once the product that adds to it is done.
template <int n>
__device__ __forceinline__ void softmax_step(float (&scores)[n][4], portable::RowStatistics<1>& rows,
                                             float (&correction)[2], float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // Two chains each of maxima and sums: a single one would take longer than the arithmetic.
    float most[2] = {rows.largest[0][half], scores[0][2 * half]};
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) most[e] = fmaxf(most[e], scores[j][2 * half + e]);
    }
    float largest = fmaxf(most[0], most[1]);
    largest = fmaxf(largest, ptx::shuffle_xor(largest, 1));
    largest = fmaxf(largest, ptx::shuffle_xor(largest, 2));
    const float shift = largest == -portable::infinity ? 0 : largest * scale_log2;  // -inf: no key seen so far
    correction[half] = ptx::exp2(fmaf(rows.largest[0][half], scale_log2, -shift));
    float sum[2] = {rows.sum[0][half] * correction[half], 0};
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& score = scores[j][2 * half + e];
        score = ptx::exp2(fmaf(score, scale_log2, -shift));
        sum[e] += score;
      }
    }
    rows.largest[0][half] = largest;
    rows.sum[0][half] = sum[0] + sum[1];
  }
}

template <int n>
__device__ __forceinline__ void scale_rows(float (&o)[n][4], const float (&factor)[2]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) o[j][e] *= factor[e / 2];
  }
}

/// One warpgroup's view of the rings.
template <class Shape>
struct ForwardConsumer {
  const ForwardArguments& arguments;
  ForwardShared<Shape> shared;
  int consumer;  ///< 0 to Shape::consumers - 1.
  RingPlace<Shape::stages> k_place, v_place;

  [[nodiscard]] __device__ __forceinline__ int first_row() const { return 64 * consumer; }
  __device__ __forceinline__ void release_k() {
    arrive_of_warp(shared.book.k_empty[k_place.stage]);
    k_place.advance();
  }
  __device__ __forceinline__ void release_v() {
    arrive_of_warp(shared.book.v_empty[v_place.stage]);
    v_place.advance();
  }
  __device__ __forceinline__ void await_turn() const { ptx::barrier_sync(first_turn + consumer, 256); }
  __device__ __forceinline__ void give_turn() const {
    ptx::barrier_arrive(first_turn + (consumer + 1) % Shape::consumers, 256);
  }
  __device__ __forceinline__ void meet() const { ptx::barrier_sync(first_meeting + consumer, 128); }

  __device__ __forceinline__ void mask(float (&scores)[1][Shape::keys / 8][4], const AttentionTile& tile,
                                       int step) const {
    if ((step + 1) * Shape::keys > tile.seen_keys(first_row())) {
      portable::hide_unseen<false>(scores, tile, first_row() + 16 * warp_of_group(), step * Shape::keys);
    }
  }

  /// Computes o and the statistics of a tile with keys.
  __device__ __forceinline__ void attend(const AttentionTile& tile, float (&o)[Shape::dim / 8][4],
                                         portable::RowStatistics<1>& rows);
};

template <class Shape>
__device__ __forceinline__ void ForwardConsumer<Shape>::attend(const AttentionTile& tile, float (&o)[Shape::dim / 8][4],
                                                               portable::RowStatistics<1>& rows) {
  float scores[1][Shape::keys / 8][4];
  std::uint32_t p[Shape::keys / 16][4];
  float correction[2];
  int step = uniform(key_steps(tile, Shape::keys)) - 1;

  await(shared.book.k_full[k_place.stage], k_place.parity);
  ptx::wgmma_fence(scores[0]);
  multiply_rows_by_rows(scores[0], shared.q(), first_row(), shared.k(k_place.stage));
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(scores[0]);
  release_k();
  mask(scores, tile, step);
  softmax_step(scores[0], rows, correction, arguments.common.scale_log2);
  round_to_operand(p, scores[0]);
  if (tile.keys % Shape::keys != 0) {  // P is 0 for what lies behind the keys, but what lies there may be NaN.
    await(shared.book.v_full[v_place.stage], v_place.parity);
    zero_rows(shared.v(v_place.stage), tile.keys % Shape::keys);
    meet();
  }

  while (--step >= 0) {
    await(shared.book.k_full[k_place.stage], k_place.parity);
    await_turn();
    ptx::wgmma_fence(scores[0]);
    multiply_rows_by_rows(scores[0], shared.q(), first_row(), shared.k(k_place.stage));
    ptx::wgmma_commit();
    await(shared.book.v_full[v_place.stage], v_place.parity);
    ptx::wgmma_fence(o, p);
    multiply_registers_by_columns(o, p, shared.v(v_place.stage));
    ptx::wgmma_commit();
    give_turn();
    ptx::wgmma_wait<1>(scores[0]);
    release_k();
    mask(scores, tile, step);
    softmax_step(scores[0], rows, correction, arguments.common.scale_log2);
    ptx::wgmma_wait<0>(o, p);
    release_v();
    scale_rows(o, correction);
    round_to_operand(p, scores[0]);
  }

  arrive_of_warp(shared.book.q_empty);
  await(shared.book.v_full[v_place.stage], v_place.parity);
  ptx::wgmma_fence(o, p);
  multiply_registers_by_columns(o, p, shared.v(v_place.stage));
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(o, p);
  release_v();
}

template <class Shape, bool accumulate>
__device__ __forceinline__ void consume_forward(const ForwardArguments& arguments, int consumer) {
  ForwardConsumer<Shape> self{arguments, {}, consumer, {}, {}};
  auto& book = self.shared.book;
  RingPlace<2> slot;
  RingPlace<1> q_place;
  if (consumer == 0) ptx::barrier_arrive(first_turn, 256);
  for (;; slot.advance(), q_place.advance()) {
    await(book.q_full, q_place.parity);
    const portable::WorkItem& work = book.work[slot.stage];
    if (uniform(work.exists ? 1 : 0) == 0) break;
    float o[1][Shape::dim / 8][4];
    portable::RowStatistics<1> rows = {{{-portable::infinity, -portable::infinity}}, {{0, 0}}};
    portable::set_zero(o);
    if (work.tile.keys > 0) {
      self.attend(work.tile, o[0], rows);
    } else {
      arrive_of_warp(book.q_empty);
    }
    portable::finish_softmax(o, rows, arguments.common.scale_log2);
    const int row = self.first_row() + 16 * warp_of_group();
    if constexpr (accumulate) {
      portable::merge_output(arguments.common, work.tile, work.head, row, o, rows);
    } else {
      portable::write_output(arguments.common, work.tile, work.head, row, o, rows, self.shared.o());
      __syncwarp();  // The staging may be written to again.
    }
  }
}

template <class Shape>
__device__ __forceinline__ void prepare_forward() {
  const ForwardShared<Shape> shared;
  auto& book = shared.book;
  constexpr std::uint32_t consumer_warps = 4 * Shape::consumers;
  ptx::mbarrier_init(barrier_address(book.q_full), 1);
  ptx::mbarrier_init(barrier_address(book.q_empty), consumer_warps);
  for (int stage = 0; stage < Shape::stages; ++stage) {
    ptx::mbarrier_init(barrier_address(book.k_full[stage]), 1);
    ptx::mbarrier_init(barrier_address(book.v_full[stage]), 1);
    ptx::mbarrier_init(barrier_address(book.k_empty[stage]), consumer_warps);
    ptx::mbarrier_init(barrier_address(book.v_empty[stage]), consumer_warps);
  }
  ptx::fence_mbarrier_init();
}

/// What kernels/spec/attention.h says of AttentionForward, of bf16 tensors.
///
/// Grid: any number of blocks, which take work items from a queue; Shape::threads threads; ForwardShared<Shape>::bytes
/// of shared memory, so one block per multiprocessor. Work: 4 dim FLOP for each query and key that see each other, and
/// for what pads their tiles to Shape::queries x Shape::keys. Traffic: Q and O once, K and V once for each tile of
/// queries, from the last-level cache if all goes well. Accuracy: scores, sums and O are fp32; P is rounded to bf16
/// before it meets V.
template <class Shape, bool accumulate>
__global__ void __launch_bounds__(Shape::threads, 1)
    attention_forward(const __grid_constant__ ForwardArguments arguments) {
  static_assert(registers_suffice<Shape> && ForwardShared<Shape>::bytes <= most_shared_bytes);
  if (threadIdx.x == 0) prepare_forward<Shape>();
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::give_registers_back<Shape::producer_registers>();
    if (threadIdx.x == 0) ForwardProducer<Shape>{arguments, {}, {}, {}}.run();
  } else {
    ptx::take_registers<Shape::consumer_registers>();
    consume_forward<Shape, accumulate>(arguments, uniform(static_cast<int>(threadIdx.x) / 128 - 1));
  }
}

}  // namespace hdpsim::kernels::cuda::hopper
