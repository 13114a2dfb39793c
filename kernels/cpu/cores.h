#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

namespace hdpsim::kernels {

/// Keeps this thread on the n-th of the cores that the process may use, counted from 0. Does nothing if there are not
/// as many, or if the system refuses; timing is then worse, but not wrong.
void stay_on_core(int n);

/// Seconds for a cache line from the n-th core to the m-th and back: the fastest of several hundred trips. It tells
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
/// who may run on it. 1 without threads, or if the system does not tell who may run where.
[[nodiscard]] double least_core_share(const std::vector<Seat>& seats);

}  // namespace hdpsim::kernels
