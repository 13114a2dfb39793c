#pragma once

#include <cstddef>
#include <memory>

#include "kernels/cuda/impl/device_clock.h"
#include "kernels/cuda/impl/queues.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/launch.h"

namespace hdpsim::kernels::cuda {

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
