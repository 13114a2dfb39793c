#pragma once

#include <cstdint>

namespace hdpsim::kernels::cuda::hopper {

/// A packed tensor [rows, columns], heads side by side, with rows row_stride elements apart, and the box of it that one
/// copy moves: 128 bytes of box_rows rows. What TensorMap is made from.
///
/// data is aligned to 16 bytes and row_stride is a multiple of 16 bytes: the copy engine asks for it.
struct TensorShape {
  const void* data = nullptr;
  std::int64_t row_stride = 0;
  std::int32_t columns = 0;
  std::int32_t rows = 0;
  std::int32_t box_rows = 0;
  std::int32_t element_bytes = 2;  ///< 2: bf16, 4: fp32.

  [[nodiscard]] std::int32_t box_columns() const { return 128 / element_bytes; }
};

}  // namespace hdpsim::kernels::cuda::hopper
