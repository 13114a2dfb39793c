#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

/// The type of the two sides of a matrix product, whose result is of elements. Narrow ones are the recipes of
/// Transformer Engine (docs/features/low_precision_training); they differ in what shares a scale.
enum class ProductFormat : std::uint8_t {
  elements,      ///< The model's elements: bf16 in most studies.
  fp8,           ///< A tensor has one scale, which follows from earlier steps (DelayedScaling).
  fp8_current,   ///< A tensor has one scale, which follows from the tensor itself (Float8CurrentScaling).
  fp8_blocks,    ///< 128 elements along k have an fp32 scale, as in DeepSeek-V3 (Float8BlockScaling).
  fp8_deepgemm,  ///< The same in products of DeepGEMM, which are faster than those of cuBLAS.
  mxfp8,         ///< 32 elements along k have an 8-bit exponent (MXFP8BlockScaling, for Blackwell).
  /// 4 bits: 16 elements along k have a scale in fp8, and a tensor one in fp32, which follows from it. The columns of
  /// inputs and of gradients are cast behind a Hadamard transform of 16 (NVFP4BlockScaling, for Blackwell; NVIDIA 2025,
  /// arXiv 2509.25149).
  nvfp4,
};

/// A table of products in narrow formats that a profile may have.
struct NarrowTable {
  std::string_view key;  ///< In a profile.
  const char* meaning;   ///< For the page of keys.
  double speed = 1;      ///< How many times the rate of products of bf16 tensor cores reach: data sheets.
};
/// Formats with one scale a tensor share a table, since they differ in their casts alone.
inline constexpr auto narrow_tables = std::to_array<NarrowTable>({
    {"gemm_fp8", "times of matrix products in fp8 with one scale a tensor", 2},
    {"gemm_fp8_blocks", "the same with a scale for every 128 columns, in Transformer Engine", 2},
    {"gemm_fp8_deepgemm", "the same with a scale for every 128 columns, in DeepGEMM", 2},
    {"gemm_mxfp8", "the same with one for every 32 columns", 2},
    {"gemm_nvfp4", "the same in 4 bits with one for every 16 columns", 4},
});

/// What a format is whose numbers are narrower than elements. Casts, kept tensors, prices and words follow from it.
struct NarrowFormat {
  ProductFormat format;
  std::string_view word;  ///< In studies (`kernels.linear`).
  std::size_t table = 0;  ///< Its products among narrow_tables.
  std::int64_t bits = 8;
  std::int64_t block = 0;          ///< Numbers along k that share a scale; 0: all of a tensor.
  std::int64_t scale_bytes = 0;    ///< Of a block.
  std::int64_t reads = 1;          ///< How often a cast reads what it casts: once more where a scale follows from it.
  std::int64_t reads_of_norm = 1;  ///< The same of a norm's output; 0: the norm writes the format itself.
};
/// All of them, in the order of the enumeration.
inline constexpr auto narrow_formats = std::to_array<NarrowFormat>({
    {.format = ProductFormat::fp8, .word = "fp8", .table = 0, .reads_of_norm = 0},
    {.format = ProductFormat::fp8_current, .word = "fp8_current", .table = 0, .reads = 2},
    {.format = ProductFormat::fp8_blocks, .word = "fp8_blocks", .table = 1, .block = 128, .scale_bytes = 4},
    {.format = ProductFormat::fp8_deepgemm, .word = "fp8_deepgemm", .table = 2, .block = 128, .scale_bytes = 4},
    {.format = ProductFormat::mxfp8, .word = "mxfp8", .table = 3, .block = 32, .scale_bytes = 1},
    // A norm does not know the largest of what the transform makes of its output.
    {.format = ProductFormat::nvfp4,
     .word = "nvfp4",
     .table = 4,
     .bits = 4,
     .block = 16,
     .scale_bytes = 1,
     .reads = 2,
     .reads_of_norm = 2},
});

[[nodiscard]] constexpr bool is_narrow(ProductFormat format) {
  return format != ProductFormat::elements;
}
/// Of a narrow format (checked).
[[nodiscard]] const NarrowFormat& narrow_format(ProductFormat format);
[[nodiscard]] bool in_fp8(ProductFormat format);

/// Bytes of a row of so many numbers with their scales, each number of `element_bytes` if it is an element.
[[nodiscard]] std::int64_t row_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes);

/// What wrote a tensor that a kernel casts.
enum class CastOf { norm, other };

/// Bytes that the cast of a product's input, or of the gradient of its output, reads and writes: it reads elements and
/// writes them by rows for one product and by columns for another, since both sides of a narrow product lie along k
/// (cast_transpose). One scale from the tensor itself takes a pass before, which a norm makes on its way. With the
/// scale known beforehand a norm writes fp8 itself, twice, which is the bytes of an element: 0.
[[nodiscard]] std::int64_t cast_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes,
                                      CastOf what = CastOf::other);

/// Bytes that the other direction takes of a tensor that arrived in fp8 by rows: it is read and written by columns.
[[nodiscard]] std::int64_t transpose_bytes(ProductFormat format, std::int64_t numbers);

}  // namespace hdpsim
