#pragma once

namespace hdpsim::kernels {

/// Keeps this thread on the n-th of the cores that the process may use, counted from 0. Without so many it stays as it
/// is; so it does where the system refuses, which makes timing worse, not wrong.
void stay_on_core(int n);

/// What a cache line takes from the n-th core to the m-th and back: the fastest of several hundred trips. It tells
/// whether the two share a cache. Takes about a millisecond.
[[nodiscard]] double hand_over_seconds(int n, int m);

}  // namespace hdpsim::kernels
