#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "kernels/cuda/impl/runtime.h"
#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cuda {

/// When streams of one device reached their marks, on the host's clock. CUDA only gives the time between two events:
/// now and then an event is recorded on an idle stream, so that the host sees when it happens, to a few microseconds.
class DeviceClock {
 public:
  /// `stream` must be idle.
  explicit DeviceClock(cudaStream_t stream) : stream_(stream) { set(); }

  /// Compares the clocks again if that was long ago: CUDA counts in floats, which resolve microseconds within a second.
  /// The stream must be idle.
  void keep_right();
  /// A mark at the end of what is queued on a stream of the device.
  [[nodiscard]] Mark mark(cudaStream_t stream) const;
  /// The time of a mark of any clock; waits until it is reached.
  [[nodiscard]] static std::chrono::steady_clock::time_point time_of(const Mark& mark);

 private:
  struct Anchor {
    EventHandle event;
    std::chrono::steady_clock::time_point time;
  };
  struct Point {
    Point(EventHandle recorded, std::shared_ptr<const Anchor> before)
        : event(std::move(recorded)), anchor(std::move(before)) {}
    EventHandle event;
    std::shared_ptr<const Anchor> anchor;
  };
  void set();

  cudaStream_t stream_;
  std::shared_ptr<const Anchor> anchor_;
};

}  // namespace hdpsim::kernels::cuda
