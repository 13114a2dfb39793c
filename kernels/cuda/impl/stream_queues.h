#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/cuda/impl/queues.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/launch.h"
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

/// The queues of a GPU: `compute` is the stream of a backend, `out` and `in` are streams of their own, so that each
/// direction of copies has a copy engine. Any thread may use it, one at a time.
class StreamQueues final : public Queues {
 public:
  explicit StreamQueues(const Launch& launch);
  ~StreamQueues() override { finish(); }

  [[nodiscard]] Event record(Queue queue) override;
  [[nodiscard]] Mark mark(Queue queue) override;
  void wait(Queue queue, const Event& event) override;
  [[nodiscard]] bool happened(const Event& event) override;
  void copy(Queue queue, void* to, const void* from, std::size_t bytes) override;

  /// Waits for the copies. Does not throw: it is for destructors.
  void finish() const;

  [[nodiscard]] cudaStream_t stream(Queue queue) const;
  /// The CUDA event behind an event of any StreamQueues.
  [[nodiscard]] static cudaEvent_t handle(const Event& event);

 private:
  class EventPool;

  int device_;
  const DeviceClock& clock_;
  cudaStream_t compute_;
  StreamHandle out_;
  StreamHandle in_;
  std::shared_ptr<EventPool> events_;
};

}  // namespace hdpsim::kernels::cuda
