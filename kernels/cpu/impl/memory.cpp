#include "kernels/cpu/impl/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::cpu {

std::size_t physical_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

DeviceMemory allocate_memory(std::size_t bytes) {
  // The kernel promises more memory than there is, and kills the process that uses it.
  if (bytes > physical_memory()) {
    throw DeviceError(fmt::format("cpu: {} bytes asked for, but the machine has {}", bytes, physical_memory()));
  }
  constexpr std::size_t alignment = 256;
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const std::size_t unit = bytes >= huge_page ? huge_page : alignment;
  const std::size_t rounded = (bytes / unit + 1) * unit;
  void* memory = std::aligned_alloc(unit, rounded);
  if (memory == nullptr) throw DeviceError(fmt::format("aligned_alloc: no memory for {} bytes", bytes));
  if (unit == huge_page) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: refusal costs time only
  return {memory, [](void* pointer) { std::free(pointer); }};
}

}  // namespace hdpsim::kernels::cpu
