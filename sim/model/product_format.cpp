#include "sim/model/product_format.h"

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

/// Scales of numbers that lie along k.
std::int64_t scale_bytes(ProductFormat format, std::int64_t numbers) {
  if (format == ProductFormat::fp8_blocks) return fp32_bytes * divided(numbers, 128);
  if (format == ProductFormat::mxfp8) return divided(numbers, 32);
  return 0;
}

}  // namespace

std::int64_t row_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes) {
  return in_fp8(format) ? numbers + scale_bytes(format, numbers) : numbers * element_bytes;
}

std::int64_t cast_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes, CastOf what) {
  const bool of_norm = what == CastOf::norm;
  if (!in_fp8(format) || (format == ProductFormat::fp8 && of_norm)) return 0;
  const std::int64_t reads = format == ProductFormat::fp8_current && !of_norm ? 2 : 1;
  return numbers * reads * element_bytes + 2 * row_bytes(format, numbers, element_bytes);
}

std::int64_t transpose_bytes(ProductFormat format, std::int64_t numbers) {
  return 2 * row_bytes(format, numbers, 0);
}

}  // namespace hdpsim
