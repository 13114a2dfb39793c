#pragma once

#include <cstddef>
#include <ctime>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cpu {

/// The kernels of an instruction set. DeviceError if the processor or the build lacks it.
[[nodiscard]] const KernelTable& kernels_of(InstructionSet set);

/// Descriptions from /proc and /sys; what they do not contain stays empty.
[[nodiscard]] DeviceInfo describe_processor(InstructionSet set);
[[nodiscard]] DeviceState processor_state();

/// Seconds for which the calling thread has computed. Development machines are shared: a wall clock would also count
/// other programs.
[[nodiscard]] inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[nodiscard]] std::size_t physical_memory();

/// Memory aligned to 256 bytes; in huge pages if it is large enough for them, because packed tiles touch many pages.
/// DeviceError if there is not as much.
[[nodiscard]] DeviceMemory allocate_memory(std::size_t bytes);

}  // namespace hdpsim::kernels::cpu
