#pragma once

#include <cstdint>

#include "kernels/cuda/bf16.h"
#include "kernels/cuda/device/ptx.cuh"

// Matrices in shared memory and in the registers of a warp, for products by mma.sync m16n8k16.
//
// A warp holds an accumulator [16 m, 8 n] as float d[m][n][4]. With g = lane / 4 and t = lane % 4, d[i][j] are the
// elements (row g, column 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of the 16 x 8 tile (i, j).
namespace hdpsim::kernels::cuda::portable {

/// Opaque, so that addresses and columns of a thread are computed where they are used: registers are what limits these
/// kernels.
[[nodiscard]] __device__ __forceinline__ int thread_index() {
  return ptx::opaque(static_cast<int>(threadIdx.x));
}
[[nodiscard]] __device__ __forceinline__ int lane_index() {
  return thread_index() % 32;
}
[[nodiscard]] __device__ __forceinline__ int warp_index() {
  return thread_index() / 32;
}
/// The rows and columns of an accumulator that this lane holds: rows 16 i + g and 16 i + g + 8, columns 8 j + 2t and
/// its right neighbour.
[[nodiscard]] __device__ __forceinline__ int lane_row() {
  return lane_index() / 4;
}
[[nodiscard]] __device__ __forceinline__ int lane_column() {
  return lane_index() % 4 * 2;
}

/// Rows of `columns` bf16 in shared memory (64 or 128). Chunk c, 16 bytes, of row r lies at place c ^ (r % 8) of its
/// row, so that the eight rows that ldmatrix reads together lie in different banks. Begins at a multiple of the pitch.
template <int columns>
struct SwizzledRows {
  static_assert(columns == 64 || columns == 128);
  static constexpr int chunks = columns / 8;
  static constexpr std::uint32_t pitch = 2 * columns;

  [[nodiscard]] static __device__ __forceinline__ std::uint32_t offset(int row, int chunk) {
    return row * pitch + static_cast<std::uint32_t>((chunk ^ (row % 8)) * 16);
  }
};

/// Starts the copy of `rows` rows of `columns` bf16, `stride` elements apart, by all `threads` of the block. Rows from
/// `valid` on become zeros and are not read.
template <int rows, int columns, int threads>
__device__ __forceinline__ void copy_rows(std::uint32_t to, const bf16* from, std::int64_t stride, int valid) {
  using Layout = SwizzledRows<columns>;
  constexpr int rows_at_once = threads / Layout::chunks;
  static_assert(rows % rows_at_once == 0 && rows_at_once % 8 == 0);
  const int thread = thread_index();
  const int row = thread / Layout::chunks;
  const int chunk = thread % Layout::chunks;
  to += Layout::offset(row, chunk);
  from += row * stride + chunk * 8;
  valid -= row;
#pragma unroll
  for (int done = 0; done < rows; done += rows_at_once) {
    ptx::cp_async_16(to + done * Layout::pitch, from, done < valid);
    from = ptx::opaque(from + rows_at_once * stride);  // one pointer, not one for each copy
  }
}

/// How the lanes of ldmatrix.x4 share out a 16 x 16 piece: matrices 0 to 3 lie (rows, then columns) at (0, 0), (8, 0),
/// (0, 8), (8, 8) if down_first, at (0, 0), (0, 8), (8, 0), (8, 8) if not.
template <int columns, bool down_first>
[[nodiscard]] __device__ __forceinline__ std::uint32_t piece_address(std::uint32_t matrix, int first_row,
                                                                     int first_column) {
  const int lane = lane_index();
  const int row = down_first ? lane % 16 : lane / 16 * 8 + lane % 8;
  const int chunk = down_first ? lane / 16 : lane / 8 % 2;
  return matrix + SwizzledRows<columns>::offset(first_row + row, first_column / 8 + chunk);
}

/// Address of the piece 16 `down` rows below and 16 `right` columns to the right. A piece begins at a chunk whose
/// number has no bit in common with 2 `right`, so that adding to it is exclusive or, which commutes with the swizzle;
/// that leaves alone what lies beyond 64 columns, and an addition is part of the instruction. Opaque: one exclusive or
/// before each load costs less than the registers of all addresses that a product uses.
template <int columns>
[[nodiscard]] __device__ __forceinline__ std::uint32_t moved(std::uint32_t piece, int down, int right) {
  return (ptx::opaque(piece) ^ static_cast<std::uint32_t>(right % 4 * 32)) + right / 4 * 128 +
         down * 16 * SwizzledRows<columns>::pitch;
}

// Operands of a product: load(fragment, i, k) loads the 16 x 16 piece that is i-th along rows (left) or columns (right)
// of the product and k-th along its depth. All begin at a row and a column of a matrix in shared memory, rows and
// columns multiples of 16; `columns` is the matrix's width.

/// Left operand [16 m, 16 depth], stored as it is.
template <int columns>
struct Left {
  std::uint32_t piece;
  __device__ __forceinline__ Left(std::uint32_t matrix, int row, int column)
      : piece(piece_address<columns, true>(matrix, row, column)) {}
  __device__ __forceinline__ void load(std::uint32_t (&fragment)[4], int i, int k) const {
    ptx::ldmatrix_x4(fragment, moved<columns>(piece, i, k));
  }
};

/// Left operand, stored as its transpose [16 depth, 16 m].
template <int columns>
struct LeftTransposed {
  std::uint32_t piece;
  __device__ __forceinline__ LeftTransposed(std::uint32_t matrix, int row, int column)
      : piece(piece_address<columns, false>(matrix, row, column)) {}
  __device__ __forceinline__ void load(std::uint32_t (&fragment)[4], int i, int k) const {
    ptx::ldmatrix_x4_transposed(fragment, moved<columns>(piece, k, i));
  }
};

/// Left operand [16 m, 16 depth] that was an accumulator [16 m, 8 * 2 depth], rounded to bf16: no shared memory.
template <int m, int depth>
struct LeftRegisters {
  std::uint32_t word[m][depth][4];
  __device__ __forceinline__ explicit LeftRegisters(const float (&accumulator)[m][2 * depth][4]) {
#pragma unroll
    for (int i = 0; i < m; ++i) {
#pragma unroll
      for (int k = 0; k < depth; ++k) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float(&d)[4] = accumulator[i][2 * k + half];
          word[i][k][2 * half] = ptx::pack_bf16(d[0], d[1]);
          word[i][k][2 * half + 1] = ptx::pack_bf16(d[2], d[3]);
        }
      }
    }
  }
  __device__ __forceinline__ void load(std::uint32_t (&fragment)[4], int i, int k) const {
#pragma unroll
    for (int w = 0; w < 4; ++w) fragment[w] = word[i][k][w];
  }
};

/// Right operand [16 depth, 16 n], stored as it is.
template <int columns>
struct Right {
  std::uint32_t piece;
  __device__ __forceinline__ Right(std::uint32_t matrix, int row, int column)
      : piece(piece_address<columns, true>(matrix, row, column)) {}
  __device__ __forceinline__ void load(std::uint32_t (&fragment)[4], int j, int k) const {
    ptx::ldmatrix_x4_transposed(fragment, moved<columns>(piece, k, j));
  }
};

/// Right operand, stored as its transpose [16 n, 16 depth].
template <int columns>
struct RightTransposed {
  std::uint32_t piece;
  __device__ __forceinline__ RightTransposed(std::uint32_t matrix, int row, int column)
      : piece(piece_address<columns, false>(matrix, row, column)) {}
  __device__ __forceinline__ void load(std::uint32_t (&fragment)[4], int j, int k) const {
    ptx::ldmatrix_x4(fragment, moved<columns>(piece, j, k));
  }
};

/// d [16 m, 8 n] += left [16 m, 16 depth] right [16 depth, 8 n], one warp. Each piece of the right operand is on its
/// way while the one before it is multiplied.
template <int depth, int m, int n, class LeftOperand, class RightOperand>
__device__ __forceinline__ void multiply(float (&d)[m][n][4], const LeftOperand& left, const RightOperand& right) {
  std::uint32_t b[2][4];
  right.load(b[0], 0, 0);
#pragma unroll
  for (int k = 0; k < depth; ++k) {
    std::uint32_t a[m][4];
#pragma unroll
    for (int i = 0; i < m; ++i) left.load(a[i], i, k);
#pragma unroll
    for (int j = 0; j < n / 2; ++j) {
      const int now = k * (n / 2) + j;
      if (now + 1 < depth * (n / 2)) right.load(b[(now + 1) % 2], (now + 1) % (n / 2), (now + 1) / (n / 2));
#pragma unroll
      for (int i = 0; i < m; ++i) {
        ptx::mma_16x8x16(d[i][2 * j], a[i], b[now % 2][0], b[now % 2][1]);
        ptx::mma_16x8x16(d[i][2 * j + 1], a[i], b[now % 2][2], b[now % 2][3]);
      }
    }
  }
}

template <int m, int n>
__device__ __forceinline__ void set_zero(float (&d)[m][n][4]) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) d[i][j][e] = 0;
    }
  }
}

/// Stores an accumulator, rounded to bf16, from `row` and `column` of a matrix in shared memory on: multiples of 16 and
/// of 8 n, or 0.
template <int columns, int m, int n>
__device__ __forceinline__ void store_rounded(std::uint32_t matrix, int row, int column, const float (&d)[m][n][4]) {
  using Layout = SwizzledRows<columns>;
  const std::uint32_t first = matrix + Layout::offset(row + lane_row(), column / 8) + lane_column() * 2;
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const std::uint32_t chunk = ptx::opaque(first) ^ static_cast<std::uint32_t>(j * 16);  // as in moved()
#pragma unroll
    for (int i = 0; i < m; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        ptx::store4_shared(chunk + (16 * i + 8 * half) * Layout::pitch,
                           ptx::pack_bf16(d[i][j][2 * half], d[i][j][2 * half + 1]));
      }
    }
  }
}

}  // namespace hdpsim::kernels::cuda::portable
