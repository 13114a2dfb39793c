#include "kernels/cpu/core_peak.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/impl/processor.h"

namespace hdpsim::kernels {

double fma_peak_flops() {
  const cpu::KernelTable& kernels = cpu::kernels_of(best_instruction_set());
  constexpr int bursts = 40;
  // About 2 ms: much longer than the clock's resolution, much shorter than a time slice.
  constexpr std::int64_t rounds = 1'000'000;
  double best = 0;
  for (int burst = 0; burst < bursts; ++burst) {
    const double start = cpu::thread_seconds();
    const double operations = kernels.multiply_and_add(rounds);
    best = std::max(best, operations / (cpu::thread_seconds() - start));
  }
  return best;
}

double copy_bandwidth() {
  constexpr std::size_t least_bytes = std::size_t{64} << 20;
  const auto cache = static_cast<std::size_t>(cpu::describe_processor(best_instruction_set()).cache_bytes);
  const std::size_t bytes = std::max(least_bytes, 2 * cache);
  const DeviceMemory from = cpu::allocate_memory(bytes);
  const DeviceMemory to = cpu::allocate_memory(bytes);
  std::memset(from.get(), 1, bytes);
  std::memset(to.get(), 2, bytes);
  constexpr int copies = 8;
  double best = 0;
  for (int copy = 0; copy < copies; ++copy) {
    const double start = cpu::thread_seconds();
    std::memcpy(to.get(), from.get(), bytes);
    best = std::max(best, 2 * static_cast<double>(bytes) / (cpu::thread_seconds() - start));
  }
  return best;
}

}  // namespace hdpsim::kernels
