#pragma once

#include <cstdint>

#include "kernels/cpu/impl/vector.h"

/// The one matrix product of which attention consists, and its data layouts.
namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

// A strip of rows by a panel of columns is accumulated in registers: 24 of 32, or 12 of 16.
inline constexpr int strip = width == 16 ? 12 : 6;
inline constexpr int panel = 2 * width;

inline constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
inline constexpr std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
inline constexpr std::int64_t most(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

/// Elements between rows of a packed [rows, dim] operand: the rows of a panel must not all fall into the same few sets
/// of the first-level cache, as they would at a power of two.
template <int dim>
inline constexpr std::int64_t padded_row = dim + 16;

/// The use of the product: C = AB, C += AB or C = AB + row_factor C.
enum class Into { overwrite, add, rescale };

/// One strip by one panel of C from `inner` products. Element (i, l) of A is a[i a_row + l a_inner], (l, j) of B is
/// b[l b_inner + j], (i, j) of C is c[i c_row + j]. Strides are constants so that one pointer serves all rows.
template <Into into, std::int64_t a_row, std::int64_t a_inner, std::int64_t b_inner, std::int64_t c_row>
inline void multiply(const float* a, const float* b, std::int64_t inner, float* c, const float* row_factor = nullptr) {
  Vector sums[strip][2] = {};
  for (std::int64_t l = 0; l < inner; ++l) {
    const Vector b0 = load(b);
    const Vector b1 = load(b + width);
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < strip; ++i) {
      const Vector factor = broadcast(a[i * a_row]);
      sums[i][0] = multiply_add(factor, b0, sums[i][0]);
      sums[i][1] = multiply_add(factor, b1, sums[i][1]);
    }
    a += a_inner;
    b += b_inner;
  }
#pragma GCC unroll 12
  for (std::int64_t i = 0; i < strip; ++i) {
    float* row = c + i * c_row;
    if constexpr (into == Into::add) {
      sums[i][0] += load(row);
      sums[i][1] += load(row + width);
    } else if constexpr (into == Into::rescale) {
      const Vector factor = broadcast(row_factor[i]);
      sums[i][0] = multiply_add(factor, load(row), sums[i][0]);
      sums[i][1] = multiply_add(factor, load(row + width), sums[i][1]);
    }
    store(row, sums[i][0]);
    store(row + width, sums[i][1]);
  }
}

/// Rows [rows, dim] at `stride`, times `factor`, to rows at padded_row<dim>; zero rows up to `padded_rows`.
template <int dim>
inline void pack_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t padded_rows, float factor,
                      float* to) {
  const Vector scale = broadcast(factor);
  for (std::int64_t row = 0; row < padded_rows; ++row) {
    for (int i = 0; i < dim; i += width) {
      store(to + row * padded_row<dim> + i, row < rows ? load(from + row * stride + i) * scale : Vector{});
    }
  }
}

/// Rows [rows, dim] at `stride`, transposed to panels [rows / panel, dim, panel]; the last panel is filled up with
/// zeros.
template <int dim>
inline void pack_transposed(const float* from, std::int64_t stride, std::int64_t rows, float* to) {
  for (std::int64_t first = 0; first < rows; first += width) {
    float* column = to + first / panel * panel * dim + first % panel;
    for (int i = 0; i < dim; i += width) {
      Vector block[width];
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < width; ++r) {
        block[r] = first + r < rows ? load(from + (first + r) * stride + i) : Vector{};
      }
      transpose(block);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < width; ++r) store(column + (i + r) * panel, block[r]);
    }
  }
  const std::int64_t filled = round_up(rows, width);
  if (filled % panel == 0) return;
  float* column = to + filled / panel * panel * dim + filled % panel;
  for (std::int64_t i = 0; i < dim; ++i) store(column + i * panel, Vector{});
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
