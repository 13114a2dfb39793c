#pragma once

#include <ctime>

namespace hdpsim::kernels::cpu {

/// Seconds that the calling thread has computed. Development machines are shared: a wall clock would also count what
/// the neighbours do.
[[nodiscard]] inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace hdpsim::kernels::cpu
