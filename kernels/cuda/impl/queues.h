#pragma once

#include <cstddef>
#include <memory>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cuda {

/// The queues of one device that a program works with. Each does its work in order; between them only events give
/// order.
enum class Queue { compute, out, in };

/// A point in the work of a queue. Good for waits on every queue of the device, whoever recorded it.
using Event = std::shared_ptr<const void>;

/// What code that schedules copies needs of a device, and all that it may use: it can then be tested against queues
/// that run in the worst order that their events allow. Nothing here waits for the device.
class Queues {
 public:
  Queues() = default;
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;
  virtual ~Queues() = default;

  /// Everything queued on `queue` so far.
  [[nodiscard]] virtual Event record(Queue queue) = 0;
  /// The same, good for asking the backend of the device when it was.
  [[nodiscard]] virtual Mark mark(Queue queue) = 0;
  /// What is queued on `queue` from now on starts after the event. A null event is the beginning of time.
  virtual void wait(Queue queue, const Event& event) = 0;
  [[nodiscard]] virtual bool happened(const Event& event) = 0;
  /// Either end may be pinned host memory.
  virtual void copy(Queue queue, void* to, const void* from, std::size_t bytes) = 0;
};

}  // namespace hdpsim::kernels::cuda
