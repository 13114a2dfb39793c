#pragma once

#include <cstdint>

#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/portable/fragments.cuh"

// Matrices in shared memory as TMA writes and wgmma reads them, and their products by a warpgroup. A warp's part of an
// accumulator [64, 8 n] is what portable/fragments.cuh describes, float d[n][4] for 16 rows: of warp w of the
// warpgroup, rows 16 w to 16 w + 15.
namespace hdpsim::kernels::cuda::hopper {

using portable::lane_column;
using portable::lane_index;
using portable::lane_row;
using portable::thread_index;

[[nodiscard]] __device__ __forceinline__ int warp_of_group() {
  return thread_index() / 32 % 4;
}

/// The value, which is the same in all lanes, in a form that lets the compiler know: what follows from it, as
/// descriptors do, need not be computed by every lane. All lanes of the warp take part.
[[nodiscard]] __device__ __forceinline__ int uniform(int value) {
  return ptx::shuffle(value, 0);
}

/// bf16 [rows, columns] in shared memory: panels of 64 columns one after the other, rows of 128 bytes in each,
/// swizzled: chunk c, 16 bytes, of row r lies at place c ^ (r % 8). Begins at a multiple of 1024 bytes.
template <int row_count, int column_count>
struct Panels {
  static_assert(row_count % 8 == 0 && column_count % 64 == 0);
  static constexpr int rows = row_count;
  static constexpr int columns = column_count;
  static constexpr std::uint32_t panel_bytes = rows * 128;
  static constexpr std::uint32_t bytes = columns / 64 * panel_bytes;

  std::uint32_t address;

  /// Address of a chunk of 16 bytes: eight columns of a row.
  [[nodiscard]] __device__ __forceinline__ std::uint32_t chunk(int row, int column) const {
    return address + column / 64 * panel_bytes + row * 128 + ((column / 8 % 8) ^ (row % 8)) * 16;
  }
  /// The chunk `chunks` to the right of a chunk whose number has no bit in common with `chunks`, so that the swizzle
  /// commutes with the addition.
  [[nodiscard]] static __device__ __forceinline__ std::uint32_t moved(std::uint32_t chunk, int chunks) {
    return (chunk ^ static_cast<std::uint32_t>(chunks % 8 * 16)) + chunks / 8 * panel_bytes;
  }
  /// Operand whose depth are the columns: slice k of it, columns 16 k to 16 k + 15 of the rows from first_row on.
  [[nodiscard]] __device__ __forceinline__ std::uint64_t slice_of_columns(int first_row, int k) const {
    return ptx::operand_descriptor(address / 16 + first_row * 8 + k / 4 * (panel_bytes / 16) + k % 4 * 2, 1);
  }
  /// Operand whose depth are the rows: slice k of it, rows 16 k to 16 k + 15 of the columns from first_column on, which
  /// begins a panel.
  [[nodiscard]] __device__ __forceinline__ std::uint64_t slice_of_rows(int first_column, int k) const {
    return ptx::operand_descriptor(address / 16 + first_column / 64 * (panel_bytes / 16) + k * 128, panel_bytes / 16);
  }
};

// Each of these queues d = a b, slice of the depth by slice; the caller fences, commits and waits.

/// a: 64 rows of `a`, b: rows of `b`, both with their columns as depth: rows of a times rows of b.
template <int n, class A, class B>
__device__ __forceinline__ void multiply_rows_by_rows(float (&d)[n][4], const A& a, int first_row, const B& b) {
  static_assert(A::columns == B::columns && B::rows == 8 * n);
#pragma unroll
  for (int k = 0; k < A::columns / 16; ++k) {
    ptx::wgmma<ptx::Depth::along_rows, ptx::Depth::along_rows>(d, a.slice_of_columns(first_row, k),
                                                               b.slice_of_columns(0, k), k > 0);
  }
}

/// a: registers; b: columns of `b`, with its rows as depth. d += a b.
template <int n, int slices, class B>
__device__ __forceinline__ void multiply_registers_by_columns(float (&d)[n][4], const std::uint32_t (&a)[slices][4],
                                                              const B& b) {
  static_assert(B::rows == 16 * slices && B::columns == 8 * n);
#pragma unroll
  for (int k = 0; k < slices; ++k) ptx::wgmma<ptx::Depth::across_rows>(d, a[k], b.slice_of_rows(0, k), true);
}

/// Both with their rows as depth: 64 columns of `a`, transposed, times 8 n columns of `b`.
template <int n, class A, class B>
__device__ __forceinline__ void multiply_columns_by_columns(float (&d)[n][4], const A& a, int first_a, const B& b,
                                                            int first_b) {
  static_assert(A::rows == B::rows);
#pragma unroll
  for (int k = 0; k < A::rows / 16; ++k) {
    ptx::wgmma<ptx::Depth::across_rows, ptx::Depth::across_rows>(d, a.slice_of_rows(first_a, k),
                                                                 b.slice_of_rows(first_b, k), k > 0);
  }
}

/// An accumulator [64, 16 slices], rounded to bf16, as left operand of the next product.
template <int slices>
__device__ __forceinline__ void round_to_operand(std::uint32_t (&a)[slices][4], const float (&d)[2 * slices][4]) {
#pragma unroll
  for (int k = 0; k < slices; ++k) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      a[k][2 * half] = ptx::pack_bf16(d[2 * k + half][0], d[2 * k + half][1]);
      a[k][2 * half + 1] = ptx::pack_bf16(d[2 * k + half][2], d[2 * k + half][3]);
    }
  }
}

template <int slices>
__device__ __forceinline__ void copy_operand(std::uint32_t (&to)[slices][4], const std::uint32_t (&from)[slices][4]) {
#pragma unroll
  for (int k = 0; k < slices; ++k) {
#pragma unroll
    for (int word = 0; word < 4; ++word) to[k][word] = from[k][word];
  }
}

/// Makes rows from `first` on zero, as products need that must not see what lies behind a document: even 0 x NaN is
/// NaN. By a warpgroup; its threads must meet before they multiply.
template <class Matrix>
__device__ __forceinline__ void zero_rows(const Matrix& matrix, int first) {
  constexpr int chunks = Matrix::columns / 8;
  for (int i = thread_index() % 128; i < (Matrix::rows - first) * chunks; i += 128) {
    ptx::store16_for_async(matrix.chunk(first + i / chunks, i % chunks * 8), {});
  }
  ptx::fence_async();
}

// --- Passing buffers from hand to hand

[[nodiscard]] __device__ __forceinline__ std::uint32_t barrier_address(const std::uint64_t& barrier) {
  return ptx::shared_address(&barrier);
}
__device__ __forceinline__ void await(const std::uint64_t& barrier, std::uint32_t parity) {
  ptx::mbarrier_wait(barrier_address(barrier), parity);
}
/// One arrival for a warp, after the work of all of its lanes.
__device__ __forceinline__ void arrive_of_warp(const std::uint64_t& barrier) {
  __syncwarp();
  if (lane_index() == 0) ptx::mbarrier_arrive(barrier_address(barrier));
}

/// Starts the copy of a whole matrix from `row` and `column` of a tensor on. Arrives at the barrier.
template <class Matrix>
__device__ __forceinline__ void load_panels(const Matrix& to, const ptx::TensorMap& map, int column, int row,
                                            const std::uint64_t& full) {
  const std::uint32_t barrier = barrier_address(full);
  ptx::mbarrier_arrive_expecting(barrier, Matrix::bytes);
#pragma unroll
  for (int panel = 0; panel < Matrix::columns / 64; ++panel) {
    ptx::load_box(to.address + panel * Matrix::panel_bytes, map, column + 64 * panel, row, barrier);
  }
}

// --- Sharing out a multiprocessor

/// Registers move from the producer's warpgroup to the others: together they may not have more than the launch gave
/// them, or those who ask for more wait for ever. A multiprocessor has 65,536 registers, given out by eight a thread,
/// and 227 KiB of shared memory for a block.
template <class Shape>
inline constexpr bool registers_suffice = Shape::producer_registers + Shape::consumers* Shape::consumer_registers <=
                                          (1 + Shape::consumers) * (65536 / Shape::threads / 8 * 8);
inline constexpr std::uint32_t most_shared_bytes = 227 * 1024;

/// Place in a ring of `stages` buffers that are filled and emptied in turn, and the parity of the phase in which its
/// buffer is filled. It is emptied (for the producer to wait for) in the phase of the other parity.
template <int stages>
struct RingPlace {
  std::uint32_t stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1U;
    }
  }
};

}  // namespace hdpsim::kernels::cuda::hopper
