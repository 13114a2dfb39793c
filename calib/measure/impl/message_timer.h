#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "calib/measure/subject.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::calib {

/// The buffers of one rank for sending and receiving: memory of its backend, full of random numbers. It only grows and
/// is never replaced, because the memory pages decide about the speed of a message that just fits into a cache.
class MessageBuffers {
 public:
  explicit MessageBuffers(kernels::Backend& backend) : backend_(&backend) {}

  /// Makes room for `floats` numbers in each; their contents may be lost.
  void require(std::int64_t floats, int rank);
  [[nodiscard]] const float* from() const { return static_cast<const float*>(from_.get()); }
  [[nodiscard]] float* to() const { return static_cast<float*>(to_.get()); }
  /// Copies the first numbers of `from` to `to`.
  void restore(std::int64_t floats);

 private:
  kernels::Backend* backend_;
  std::int64_t room_ = 0;
  kernels::DeviceMemory from_, to_;
};

/// Begin and end of one operation on one rank, on the clock that the ranks of this machine share.
struct MessageInterval {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

/// One operation in each of `runs` measurements on this rank: `before_each`, a barrier, then the operation. Called by
/// all ranks at once. Sizes are those of nccl-tests: all-reduce works on `bytes`; all-gather and reduce-scatter on
/// `bytes` of all ranks together; of all-to-all each rank sends `bytes`; send/recv moves `bytes` to the next rank while
/// as much arrives from the one before.
[[nodiscard]] std::vector<MessageInterval> time_message(kernels::Transport& transport, const MessageSubject& message,
                                                        MessageBuffers& buffers, int runs,
                                                        const std::function<void()>& before_each);

/// The duration of each run: from the begin of the last rank, for which the others could only wait, to the last end.
[[nodiscard]] std::vector<double> durations_of(const std::vector<std::vector<MessageInterval>>& by_rank);

}  // namespace hdpsim::calib
