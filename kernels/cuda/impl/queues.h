#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/spec/backend.h"
#include "kernels/spec/host_copies.h"

namespace hdpsim::kernels::cuda {

/// The queues of one device that a program works with. Each works in order; only events order them with each other.
enum class Queue { compute, out, in };

/// A point in the work of a queue. Every queue of the device may wait for it, whoever recorded it.
using Event = std::shared_ptr<const void>;

/// The operations that scheduling of copies needs of a device; code limited to these can be tested against queues that
/// run in the worst order that their events allow. None of them waits for the device.
class Queues {
 public:
  Queues() = default;
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;
  virtual ~Queues() = default;

  /// An event after everything queued on `queue` so far.
  [[nodiscard]] virtual Event record(Queue queue) = 0;
  /// The same as a mark whose time can be asked from the backend of the device.
  [[nodiscard]] virtual Mark mark(Queue queue) = 0;
  /// Makes later work on `queue` start after the event. A null event has always happened.
  virtual void wait(Queue queue, const Event& event) = 0;
  [[nodiscard]] virtual bool happened(const Event& event) = 0;
  /// Either end may be pinned host memory.
  virtual void copy(Queue queue, void* to, const void* from, std::size_t bytes) = 0;
};

/// Copies to and from the host on the queues `out` and `in`, ordered with `compute` by events: no call waits for the
/// device.
class QueueCopies final : public HostCopies {
 public:
  using Allocate = std::function<DeviceMemory(std::size_t bytes)>;

  /// `queues`, which no other copies use, must outlive this. `allocate` returns memory of the host.
  QueueCopies(Queues& queues, Allocate allocate) : queues_(queues), allocate_(std::move(allocate)) {}

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override { return allocate_(bytes); }
  [[nodiscard]] Ticket start(std::vector<Copy> batch, Way way) override;
  Interval wait(Ticket ticket) override;

 private:
  struct Batch {
    Interval when;
    Event done;
  };
  Queues& queues_;
  Allocate allocate_;
  std::deque<Batch> under_way_;  ///< Batches that are not waited for yet.
  Ticket waited_for_ = 0;
};

}  // namespace hdpsim::kernels::cuda
