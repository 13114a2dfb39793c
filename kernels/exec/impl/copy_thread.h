#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/exec/impl/recorder.h"

namespace hdpsim::kernels::exec {

/// Copies between the memory of a CPU's device and its host beside what computes, one batch after the other: the copy
/// engine of a device that has none.
class CopyThread {
 public:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  /// When a batch was copied.
  struct Interval {
    Recorder::Clock::time_point begin;
    Recorder::Clock::time_point end;
  };
  using Ticket = std::uint64_t;

  CopyThread() = default;
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  /// Leaves undone what has not begun.
  ~CopyThread();

  /// The memory belongs to the thread until wait().
  [[nodiscard]] Ticket start(std::vector<Copy> batch);
  /// For a batch and all before it. Every batch is waited for once, in the order of their starts.
  Interval wait(Ticket ticket);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Copy>> waiting_;
  std::deque<Interval> done_;  ///< Not waited for yet.
  Ticket started_ = 0;
  Ticket waited_for_ = 0;
  bool ends_ = false;
  std::thread thread_;  ///< From the first batch on.
};

}  // namespace hdpsim::kernels::exec
