#pragma once

#include <cstdint>

namespace hdpsim {

/// The type of the two sides of a matrix product, whose result is of elements. Those in fp8 are the recipes of
/// Transformer Engine (docs/features/low_precision_training); they differ in what shares a scale.
enum class ProductFormat : std::uint8_t {
  elements,     ///< The model's elements: bf16 in most studies.
  fp8,          ///< A tensor has one scale, which follows from earlier steps (DelayedScaling).
  fp8_current,  ///< A tensor has one scale, which follows from the tensor itself (Float8CurrentScaling).
  fp8_blocks,   ///< 128 elements along k have an fp32 scale, as in DeepSeek-V3 (Float8BlockScaling).
  mxfp8,        ///< 32 elements along k have an 8-bit exponent (MXFP8BlockScaling, for Blackwell).
};

[[nodiscard]] constexpr bool in_fp8(ProductFormat format) {
  return format != ProductFormat::elements;
}

/// Bytes of a row of so many numbers with their scales, each number of `element_bytes` if it is an element.
[[nodiscard]] std::int64_t row_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes);

/// What wrote a tensor that a kernel casts to fp8.
enum class CastOf { norm, other };

/// Bytes that the cast of a product's input, or of the gradient of its output, reads and writes: it reads elements and
/// writes them by rows for one product and by columns for another, since both sides of a product in fp8 lie along k
/// (cast_transpose). One scale from the tensor itself takes a pass before, which a norm makes on its way. With the
/// scale known beforehand a norm writes fp8 itself, twice, which is the bytes of an element: 0.
[[nodiscard]] std::int64_t cast_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes,
                                      CastOf what = CastOf::other);

/// Bytes that the other direction takes of a tensor that arrived in fp8 by rows: it is read and written by columns.
[[nodiscard]] std::int64_t transpose_bytes(ProductFormat format, std::int64_t numbers);

}  // namespace hdpsim
