#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// The operations of a MessageTransport whose messages are in the memory of a backend: all of them are queued there.
class BackendSums {
 public:
  /// `backend` must outlive this.
  explicit BackendSums(Backend& backend) : backend_(backend) {}

  [[nodiscard]] float* reserve_parts(std::size_t count) {
    if (count > parts_count_) {
      backend_.synchronize();  // The old memory may be in use.
      parts_.reset();
      parts_ = backend_.allocate(count * sizeof(float));
      parts_count_ = count;
    }
    return static_cast<float*>(parts_.get());
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    if (to != from && bytes > 0) backend_.copy(to, from, bytes);
  }
  void add(float* sum, const float* part, std::size_t count) {
    if (count == 0) return;
    backend_.run(Add{.count = static_cast<std::int64_t>(count), .a = sum, .b = part, .y = sum, .fp32 = true});
  }

 private:
  Backend& backend_;
  DeviceMemory parts_;
  std::size_t parts_count_ = 0;
};

}  // namespace hdpsim::kernels
