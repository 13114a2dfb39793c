#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::exec {

/// The losses of a step's rows on one device, which keeps them until the step ends.
class StepLosses {
 public:
  /// `backend` must outlive this.
  explicit StepLosses(Backend& backend) : backend_(backend) {}

  /// Makes room for `most` rows; none are present yet.
  void begin(std::int64_t most) {
    rows_ = 0;
    if (most <= capacity_) return;
    memory_.reset();
    memory_ = backend_.allocate(static_cast<std::size_t>(most) * sizeof(float));
    capacity_ = most;
  }
  void add(const float* losses, std::int64_t rows) {
    if (rows == 0) return;
    backend_.copy(static_cast<float*>(memory_.get()) + rows_, losses, static_cast<std::size_t>(rows) * sizeof(float));
    rows_ += rows;
  }
  /// Sum over all rows. Waits for the device.
  [[nodiscard]] double sum() const {
    if (rows_ == 0) return 0;
    std::vector<float> losses(static_cast<std::size_t>(rows_));
    backend_.download(losses.data(), memory_.get(), losses.size() * sizeof(float));
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

 private:
  Backend& backend_;
  DeviceMemory memory_;
  std::int64_t capacity_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace hdpsim::kernels::exec
