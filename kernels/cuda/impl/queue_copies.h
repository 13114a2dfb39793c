#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "kernels/cuda/impl/queues.h"
#include "kernels/spec/host_copies.h"

namespace hdpsim::kernels::cuda {

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
