#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/spec/host_copies.h"

namespace hdpsim::kernels::exec {

/// The copy engine of a CPU, whose memory is the host's: a thread that copies all batches one after the other.
class CopyThread final : public HostCopies {
 public:
  CopyThread() = default;
  /// Drops batches that have not begun.
  ~CopyThread() override;

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override;
  [[nodiscard]] Ticket start(std::vector<Copy> batch, Way way) override;
  Interval wait(Ticket ticket) override;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Copy>> waiting_;
  std::deque<Interval> done_;  ///< Batches that are done, but not waited for yet.
  Ticket started_ = 0;
  Ticket waited_for_ = 0;
  bool ends_ = false;
  std::thread thread_;  ///< Started with the first batch.
};

}  // namespace hdpsim::kernels::exec
