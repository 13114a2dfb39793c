#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace hdpsim::kernels {

/// Cores that compute as ranks of a training do while another one is timed: they share its power, its last-level cache
/// and its memory bandwidth.
class BusyCores {
 public:
  /// Makes threads on the cores 1, ..., cores - 1 of those that the process may use; they rest at first.
  explicit BusyCores(int cores);
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;
  ~BusyCores();

  /// Makes the threads compute matrix products, whose operands no cache holds, until rest() is called.
  void work();
  /// Returns when all threads rest, within milliseconds.
  void rest();

 private:
  enum class Order { rest, work, end };

  void give(Order order);
  void serve(int core);

  std::mutex mutex_;
  std::condition_variable changed_;
  Order order_ = Order::rest;
  int working_;                        ///< Threads at work, including those that get ready.
  std::vector<std::jthread> threads_;  // last member, so that they end before what they use
};

}  // namespace hdpsim::kernels
