#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// Memory of a backend that is kept between calls. Growing discards its contents.
class Scratch {
 public:
  /// `backend` must outlive this.
  explicit Scratch(Backend& backend) : backend_(backend) {}
  /// At least `bytes`, which are zero where nobody has written yet.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_ || !memory_) {
      backend_.synchronize();  // the old memory may be in use
      memory_.reset();
      memory_ = backend_.allocate(bytes);
      backend_.fill_bytes(memory_.get(), 0, bytes);
      bytes_ = bytes;
    }
    return data();
  }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(memory_.get()); }

 private:
  Backend& backend_;
  DeviceMemory memory_;
  std::size_t bytes_ = 0;
};

/// Rows that lie `stride` bytes apart.
template <class T>
struct StridedRows {
  T* data = nullptr;
  std::size_t stride = 0;
  /// The same from row `first` on.
  [[nodiscard]] StridedRows from(std::int64_t first) const {
    return {data + static_cast<std::size_t>(first) * stride, stride};
  }
};

/// Copies the first `width` bytes of `rows` rows.
inline void copy_rows(Backend& backend, const StridedRows<std::byte>& to, const StridedRows<const std::byte>& from,
                      std::size_t width, std::int64_t rows) {
  if (rows == 0) return;
  if (to.stride == width && from.stride == width) {
    return backend.copy(to.data, from.data, width * static_cast<std::size_t>(rows));
  }
  for (std::int64_t row = 0; row < rows; ++row) backend.copy(to.from(row).data, from.from(row).data, width);
}

}  // namespace hdpsim::kernels
