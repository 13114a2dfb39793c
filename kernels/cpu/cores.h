#pragma once

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hdpsim::kernels {

/// Keeps this thread on the n-th of the cores that the process may use, counted from 0. Does nothing if there are not
/// as many, or if the system refuses; timing is then worse, but not wrong.
void stay_on_core(int n);

/// Seconds for a cache line from the n-th core to the m-th and back: the fastest of several hundred trips. It shows
/// whether the two share a cache. Takes about a millisecond.
[[nodiscard]] double hand_over_seconds(int n, int m);

/// The cores of one host, as it numbers them.
using CoreSet = std::bitset<1024>;

/// The cores on which a thread may run.
struct Seat {
  std::uint64_t host = 0;  ///< The same number for the same host.
  CoreSet cores;
};
/// The seat of the calling thread.
[[nodiscard]] Seat own_seat();

/// The share of a core, at most 1, that the worst placed of several busy threads has: a core is shared evenly by all
/// who may run on it. 1 without threads, or if the system does not report who may run where.
[[nodiscard]] double least_core_share(const std::vector<Seat>& seats);

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
