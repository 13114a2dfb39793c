#pragma once

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

namespace hdpsim::kernels {

/// Makes a thread slow, as SIGSTOP and SIGCONT in turn do with a process: for each second on a core it is stopped for
/// slowdown - 1 seconds, whatever it does, messages included. What it waits for is not prolonged. Its stops come every
/// few milliseconds of its time on a core, by a signal of its own (SIGRTMIN + 6), whose handler sleeps.
class DutyCycle {
 public:
  /// Of the calling thread, which must outlive it and is not slow yet. DeviceError if the system refuses.
  DutyCycle();
  DutyCycle(const DutyCycle&) = delete;
  DutyCycle& operator=(const DutyCycle&) = delete;
  ~DutyCycle();

  /// From now on; 1: not slow. Requires at least 1 (checked).
  void set(double slowdown);

 private:
  void keep();

  std::thread::native_handle_type thread_;
  clockid_t time_on_core_;
  std::mutex mutex_;
  std::condition_variable changed_;
  double slowdown_ = 1;
  bool ends_ = false;
  std::jthread keeper_;  // last member, so that it ends before what it uses
};

}  // namespace hdpsim::kernels
