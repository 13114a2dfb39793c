#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/portable/arguments.h"
#include "kernels/cuda/portable/fragments.cuh"

// The steps between the products of attention: mask, softmax and its gradient, on the accumulators of a warp.
namespace hdpsim::kernels::cuda::portable {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float log_of_2 = 0.693147180559945309F;

/// One lane's part of a warp's rows: row (i, half) is 16 i + 8 half + lane_row() of the warp's.
template <int m>
struct RowStatistics {
  float largest[m][2];  ///< Largest score, not scaled.
  float sum[m][2];      ///< Sum of exp2(scale_log2 (score - largest)) over the lane's columns.
};

/// Sets scores that the query does not see to -inf. `row` and `column` are the accumulator's first, within the tile.
/// Without `windowed` no tile may have a window: one comparison with a constant leaves forward the registers it needs.
template <bool windowed, int m, int n>
__device__ __forceinline__ void hide_unseen(float (&scores)[m][n][4], const AttentionTile& tile, int row, int column) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = row + 16 * i + 8 * half + lane_row();
      const int seen = tile.seen_keys(query) - column - lane_column();
      const int hidden = windowed ? tile.hidden_keys(query) - column - lane_column() : 0;
#pragma unroll
      for (int j = 0; j < n; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (8 * j + e >= seen || (windowed && 8 * j + e < hidden)) scores[i][j][2 * half + e] = -infinity;
        }
      }
    }
  }
}

/// Turns scores into exp2(scale_log2 (score - largest)) and brings sum and o to the new largest score.
template <int m, int n, int dim8>
__device__ __forceinline__ void update_softmax(float (&scores)[m][n][4], float (&o)[m][dim8][4], RowStatistics<m>& rows,
                                               float scale_log2) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = rows.largest[i][half];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        largest = fmaxf(largest, fmaxf(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
      }
      largest = fmaxf(largest, ptx::shuffle_xor(largest, 1));
      largest = fmaxf(largest, ptx::shuffle_xor(largest, 2));
      const float shift = largest == -infinity ? 0 : largest * scale_log2;  // -inf: no key seen so far
      const float correction = ptx::exp2(fmaf(rows.largest[i][half], scale_log2, -shift));
      float sum = rows.sum[i][half] * correction;
#pragma unroll
      for (int j = 0; j < n; ++j) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[i][j][e] = ptx::exp2(fmaf(scores[i][j][e], scale_log2, -shift));
          sum += scores[i][j][e];
        }
      }
#pragma unroll
      for (int j = 0; j < dim8; ++j) {
        o[i][j][2 * half] *= correction;
        o[i][j][2 * half + 1] *= correction;
      }
      rows.largest[i][half] = largest;
      rows.sum[i][half] = sum;
    }
  }
}

/// Divides o by the sums and returns in `rows.sum` the log sum exp, base 2: -inf for rows without a key, whose o is 0.
template <int m, int dim8>
__device__ __forceinline__ void finish_softmax(float (&o)[m][dim8][4], RowStatistics<m>& rows, float scale_log2) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = rows.sum[i][half];
      sum += ptx::shuffle_xor(sum, 1);
      sum += ptx::shuffle_xor(sum, 2);
      const float factor = sum == 0 ? 0 : 1 / sum;
#pragma unroll
      for (int j = 0; j < dim8; ++j) {
        o[i][j][2 * half] *= factor;
        o[i][j][2 * half + 1] *= factor;
      }
      rows.sum[i][half] = sum == 0 ? -infinity : fmaf(rows.largest[i][half], scale_log2, ptx::log2(sum));
    }
  }
}

/// Turns scores into probabilities exp(scale score - LSE), with the LSE of the tile's rows, from `row` on, in shared
/// memory.
template <int m, int n>
__device__ __forceinline__ void to_probabilities(float (&scores)[m][n][4], std::uint32_t lse, int row,
                                                 float scale_log2) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float of_row = ptx::load_float_shared(lse + (row + 16 * i + 8 * half + lane_row()) * 4);
      const float shift =
          of_row == -infinity ? infinity : of_row * log2_of_e;  // -inf: a row without keys, whose P is 0
#pragma unroll
      for (int j = 0; j < n; ++j) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[i][j][e] = ptx::exp2(fmaf(scores[i][j][e], scale_log2, -shift));
        }
      }
    }
  }
}

/// Turns gradients of probabilities into gradients of scaled scores: dS = P (dP - delta).
template <int m, int n>
__device__ __forceinline__ void to_score_gradients(float (&d_p)[m][n][4], const float (&p)[m][n][4],
                                                   std::uint32_t delta, int row) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float of_row = ptx::load_float_shared(delta + (row + 16 * i + 8 * half + lane_row()) * 4);
#pragma unroll
      for (int j = 0; j < n; ++j) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) d_p[i][j][e] = p[i][j][e] * (d_p[i][j][e] - of_row);
      }
    }
  }
}

/// Adds factor d to rows [row, row + 16 m) and columns [column, column + 8 n) of `to`, of which `valid` rows exist.
template <int m, int n>
__device__ __forceinline__ void add_rows(float* to, std::int64_t stride, int row, int column, int valid,
                                         const float (&d)[m][n][4], float factor) {
  valid -= row + lane_row();
  to += (row + lane_row()) * stride + column + lane_column();
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (16 * i + 8 * half < valid) {
#pragma unroll
        for (int j = 0; j < n; ++j) {
          ptx::add2(to + 8 * j, d[i][j][2 * half] * factor, d[i][j][2 * half + 1] * factor);
        }
      }
      to = ptx::opaque(to + 8 * stride);  // one pointer, not one for each row
    }
  }
}

}  // namespace hdpsim::kernels::cuda::portable
