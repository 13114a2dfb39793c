#pragma once

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

/// The iterations of the next loop touch no common memory, which the compiler cannot see.
#if defined(__clang__)
#define HDPSIM_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define HDPSIM_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

/// A vector of floats as wide as the registers of the instruction set that the file is compiled for. + - * / are the
/// compiler's own.
namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

#if defined(__AVX512F__)
inline constexpr int width = 16;
/// GCC 12 takes the undefined lanes of the intrinsics without a mask for uninitialised variables.
inline constexpr __mmask16 every_lane = 0xffff;
#elif defined(__AVX2__)
inline constexpr int width = 8;
#else
inline constexpr int width = 4;
#endif

using Vector = float __attribute__((vector_size(width * sizeof(float))));
using Lanes = std::int32_t __attribute__((vector_size(width * sizeof(float))));

inline Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store(float* to, Vector value) {
  std::memcpy(to, &value, sizeof value);
}
/// The first `count` lanes, zero in the others.
inline Vector load_first(const float* from, std::int64_t count) {
  Vector value{};
  std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(float));
  return value;
}
inline void store_first(float* to, Vector value, std::int64_t count) {
  std::memcpy(to, &value, static_cast<std::size_t>(count) * sizeof(float));
}
inline Vector broadcast(float value) {
  return value - Vector{};
}

/// a b + c, rounded once where the machine can.
inline Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

/// The larger of both; b if one of them is NaN.
inline Vector maximum(Vector a, Vector b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(every_lane, a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

/// Lane i of the result is lane lane_of(i) of a and b, side by side.
template <class LaneOf>
inline Vector shuffle(Vector a, Vector b, LaneOf) {
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, LaneOf::of(i)...);
  }
  (std::make_integer_sequence<int, width>{});
}

/// Lanes at a distance change places, in pairs.
template <int distance>
struct Swapped {
  static constexpr int of(int lane) { return lane ^ distance; }
};

/// Joins all lanes into one, by halves, in registers.
template <class Join>
inline float reduce(Vector value, const Join& join) {
  if constexpr (width > 8) value = join(value, shuffle(value, value, Swapped<8>{}));
  if constexpr (width > 4) value = join(value, shuffle(value, value, Swapped<4>{}));
  value = join(value, shuffle(value, value, Swapped<2>{}));
  value = join(value, shuffle(value, value, Swapped<1>{}));
  return value[0];
}
inline float sum_of(Vector value) {
  return reduce(value, [](Vector a, Vector b) { return a + b; });
}
/// Undefined for lanes with NaN.
inline float maximum_of(Vector value) {
  return reduce(value, maximum);
}

/// 2^x, relative error below 2e-7; zero below 2^-126, infinity above 2^127.5, not a number where x is none.
/// 2^x = 2^n 2^f with n the nearest integer; 2^f is the polynomial of degree 5 with the least largest relative error
/// on [-1/2, 1/2], 7.5e-8, found by Remez's exchange.
inline Vector exp2(Vector x) {
#if defined(__AVX512F__)
  const __mmask16 not_tiny = _mm512_cmp_ps_mask(x, broadcast(-126.0F), _CMP_NLT_UQ);  // true where x is not a number
#else
  // The exponent is put together by hand and must not leave its bits.
  x = maximum(broadcast(-127.0F), x);
  x = -maximum(broadcast(-128.0F), -x);
#endif
  const Vector magic = broadcast(12582912.0F);  // 1.5 x 2^23: adding it rounds to integers
  const Vector n = (x + magic) - magic;
  const Vector f = x - n;
  Vector p = broadcast(0.0013276472F);
  p = multiply_add(p, f, broadcast(0.0096755413F));
  p = multiply_add(p, f, broadcast(0.0555071327F));
  p = multiply_add(p, f, broadcast(0.2402211972F));
  p = multiply_add(p, f, broadcast(0.6931469671F));
  p = multiply_add(p, f, broadcast(1.0000000717F));
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(not_tiny, p, n);
#else
  const Lanes exponent = (__builtin_convertvector(n, Lanes) + 127) << 23;
  Vector power;
  std::memcpy(&power, &exponent, sizeof power);
  return p * power;
#endif
}

inline constexpr float log2_e = 1.44269504088896340736F;
inline constexpr float ln_2 = 0.69314718055994530942F;
inline constexpr float infinity = std::numeric_limits<float>::infinity();

/// The new row i or, for `lower`, row i + step, out of both: runs of `step` lanes change between the rows.
template <int step, bool lower>
struct Exchanged {
  static constexpr int of(int lane) {
    const bool second_run = lane / step % 2 == 1;
    if (lower) return second_run ? width + lane : lane + step;
    return second_run ? width + lane - step : lane;
  }
};
template <int step>
inline void exchange(Vector (&rows)[width]) {
#pragma GCC unroll 16
  for (int i = 0; i < width; ++i) {
    if (i / step % 2 == 1) continue;
    const Vector a = rows[i];
    const Vector b = rows[i + step];
    rows[i] = shuffle(a, b, Exchanged<step, false>{});
    rows[i + step] = shuffle(a, b, Exchanged<step, true>{});
  }
}
/// Transposes a square block. Each step exchanges, between rows so far apart, the runs of lanes off the diagonal.
inline void transpose(Vector (&rows)[width]) {
  exchange<1>(rows);
  exchange<2>(rows);
  if constexpr (width > 4) exchange<4>(rows);
  if constexpr (width > 8) exchange<8>(rows);
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
