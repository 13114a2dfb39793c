#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define HDPSIM_ANYWHERE __host__ __device__ __forceinline__
#else
#define HDPSIM_ANYWHERE inline
#endif

namespace hdpsim::kernels::cuda {

/// The upper half of an fp32: 8 bits of exponent, 7 of mantissa. A type of our own, so that the kernels need no CUDA
/// header and compile where there is no CUDA.
struct bf16 {
  std::uint16_t bits = 0;
};

[[nodiscard]] HDPSIM_ANYWHERE float to_float(bf16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16U);
}

/// Rounded to nearest, ties to even; NaN stays NaN.
[[nodiscard]] HDPSIM_ANYWHERE bf16 to_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

}  // namespace hdpsim::kernels::cuda
