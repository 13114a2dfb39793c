#pragma once

#include <ctime>

namespace hdpsim::kernels::cpu {

/// Seconds for which the calling thread has computed. Development machines are shared: a wall clock would also count
/// other programs.
[[nodiscard]] inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace hdpsim::kernels::cpu
