#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

enum class CopyDirection { to_host, to_device };

/// Times copies between a GPU and pinned host memory, as nvbandwidth does: on a stream of their own, queued behind a
/// gate, each between two events of the device.
class CopyTimer {
 public:
  /// Allocates most_bytes on either side, which takes long for pinned memory. The backend outlives the timer.
  CopyTimer(Backend& backend, std::size_t most_bytes);
  ~CopyTimer();

  /// Seconds of each of `runs` copies of at most most_bytes. both_ways: while the other direction is busy.
  [[nodiscard]] std::vector<double> time(CopyDirection direction, std::size_t bytes, bool both_ways, int runs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Load that keeps a device's copy engines or multiprocessors busy during a kernel. peer: a kernel of some thread
/// blocks that reads and writes device memory, like the send/recv kernels of a communication library: each has a
/// multiprocessor for itself, and all together move no more than the device's links to its peers would. No peer is
/// needed: the links themselves stay idle.
enum class TrafficKind { to_host, to_device, both_ways, peer };

/// Traffic that flows as long as the object lives, and longest for five seconds:
///   { const Traffic traffic(backend, TrafficKind::to_host); seconds = backend.time(runs, false, work); }
/// It has started when the constructor returns. Work must not allocate meanwhile: that may wait for the traffic to end.
class Traffic {
 public:
  /// thread_blocks: only for `peer`, at least 1 and fewer than the device has multiprocessors. DeviceError, or
  /// UnsupportedInput for an invalid number.
  Traffic(Backend& backend, TrafficKind kind, int thread_blocks = 0);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic();

 private:
  class Copies;
  class PeerCopies;
  std::vector<std::unique_ptr<Copies>> copies_;  ///< One per direction.
  std::unique_ptr<PeerCopies> peer_copies_;
};

}  // namespace hdpsim::kernels
