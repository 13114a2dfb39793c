#include "sim/model/product_format.h"

#include "sim/base/check.h"
#include "sim/base/division.h"

namespace hdpsim {
namespace {

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < narrow_formats.size(); ++i) {
    if (static_cast<std::size_t>(narrow_formats[i].format) != i + 1) return false;
  }
  return true;
}
static_assert(are_in_order());

}  // namespace

const NarrowFormat& narrow_format(ProductFormat format) {
  HDPSIM_CHECK(is_narrow(format), "elements are no narrow format");
  return narrow_formats.at(static_cast<std::size_t>(format) - 1);
}

bool in_fp8(ProductFormat format) {
  return is_narrow(format) && narrow_format(format).bits == 8;
}

std::int64_t row_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes) {
  if (!is_narrow(format)) return numbers * element_bytes;
  const NarrowFormat& narrow = narrow_format(format);
  return divided(numbers * narrow.bits, 8) +
         (narrow.block > 0 ? narrow.scale_bytes * divided(numbers, narrow.block) : 0);
}

std::int64_t cast_bytes(ProductFormat format, std::int64_t numbers, std::int64_t element_bytes, CastOf what) {
  if (!is_narrow(format)) return 0;
  const NarrowFormat& narrow = narrow_format(format);
  const std::int64_t reads = what == CastOf::norm ? narrow.reads_of_norm : narrow.reads;
  return reads == 0 ? 0 : numbers * reads * element_bytes + 2 * row_bytes(format, numbers, element_bytes);
}

std::int64_t transpose_bytes(ProductFormat format, std::int64_t numbers) {
  return 2 * row_bytes(format, numbers, 0);
}

}  // namespace hdpsim
