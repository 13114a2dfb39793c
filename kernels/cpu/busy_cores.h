#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace hdpsim::kernels {

/// Cores that compute as ranks of a training do while another one is timed: they share its power, its last cache and
/// the way to memory.
class BusyCores {
 public:
  /// Threads on the cores 1, ..., cores - 1 of those that the process may use; they rest at first.
  explicit BusyCores(int cores);
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;
  ~BusyCores();

  /// Matrix products, whose operands no cache holds, until rest() is called.
  void work();
  /// Returns when all rest, within milliseconds.
  void rest();

 private:
  enum class Order { rest, work, end };

  void give(Order order);
  void serve(int core);

  std::mutex mutex_;
  std::condition_variable changed_;
  Order order_ = Order::rest;
  int working_;                        ///< Threads, those that get ready included.
  std::vector<std::jthread> threads_;  // the last member: ends before what it uses
};

}  // namespace hdpsim::kernels
