#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <vector>

#include "kernels/cuda/impl/runtime.h"

namespace hdpsim::kernels::cuda {

/// Holds a stream, so that everything queued behind it starts without waiting for the host. Opens by itself after
/// `time_limit` of device time: a program that waits for work behind the gate is late, but not stuck.
class Gate {
 public:
  static constexpr std::chrono::nanoseconds time_limit = std::chrono::milliseconds(250);

  Gate();

  /// Queues a kernel of one thread that spins until open() is called. The gate before must be open.
  void close(cudaStream_t stream);
  void open();

 private:
  PinnedMemory opened_;  ///< The number of the last gate that the host has opened, read by the device.
  int closed_ = 0;       ///< The number of the last gate that was closed.
};

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
