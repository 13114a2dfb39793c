#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

namespace hdpsim::kernels {

/// Keeps this thread on the n-th of the cores that the process may use, counted from 0. Without so many it stays as it
/// is; so it does where the system refuses, which makes timing worse, not wrong.
void stay_on_core(int n);

/// What a cache line takes from the n-th core to the m-th and back: the fastest of several hundred trips. It tells
/// whether the two share a cache. Takes about a millisecond.
[[nodiscard]] double hand_over_seconds(int n, int m);

/// The cores of one host, as it numbers them.
using CoreSet = std::bitset<1024>;

/// Where a thread may run.
struct Seat {
  std::uint64_t host = 0;  ///< The same number for the same host.
  CoreSet cores;
};
/// Of the calling thread.
[[nodiscard]] Seat own_seat();

/// The share of a core that the worst seated of several busy threads has, at most 1: a core is shared evenly by all who
/// may run on it. Without any, or where the system does not say who may run where, 1.
[[nodiscard]] double least_core_share(const std::vector<Seat>& seats);

}  // namespace hdpsim::kernels
