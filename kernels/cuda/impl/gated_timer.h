#pragma once

#include <functional>
#include <vector>

#include "kernels/cuda/impl/gate.h"
#include "kernels/cuda/impl/runtime.h"

namespace hdpsim::kernels::cuda {

/// Times work on a stream by events of the device, runs queued behind a gate.
class GatedTimer {
 public:
  explicit GatedTimer(cudaStream_t stream) : stream_(stream) {}

  /// Seconds of each of `runs` calls of `work`; `before` is queued ahead of each and not timed.
  [[nodiscard]] std::vector<double> time(int runs, const std::function<void()>& before,
                                         const std::function<void()>& work);
  /// Lets the queued work run. Does nothing if it runs already.
  void open() { gate_.open(); }

 private:
  struct Interval {
    EventHandle begin = make_event(true);
    EventHandle end = make_event(true);
  };

  cudaStream_t stream_;
  Gate gate_;
  std::vector<Interval> intervals_;
};

}  // namespace hdpsim::kernels::cuda
