#include "kernels/cpu/impl/processor.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

bool processor_has(InstructionSet set) {
#if defined(__x86_64__) || defined(__i386__)
  switch (set) {
    case InstructionSet::portable:
      return true;
    case InstructionSet::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  }
  return false;
#else
  return set == InstructionSet::portable;
#endif
}

/// Null if the build or the processor lacks it.
const cpu::KernelTable* usable_kernels(InstructionSet set) {
  if (!processor_has(set)) return nullptr;
  switch (set) {
    case InstructionSet::portable:
      return cpu::portable_kernels();
    case InstructionSet::avx2:
      return cpu::avx2_kernels();
    case InstructionSet::avx512:
      return cpu::avx512_kernels();
  }
  return nullptr;
}

/// The entries of /proc/cpuinfo for the first core, by their keys.
std::map<std::string, std::string> first_core() {
  std::map<std::string, std::string> facts;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    if (colon == std::string::npos || value == std::string::npos) continue;
    facts.emplace(line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1), line.substr(value));
  }
  return facts;
}

/// Hypervisors call processors of several generations by one name; family and model distinguish them.
std::string processor_name() {
  const std::map<std::string, std::string> facts = first_core();
  const auto fact = [&](const char* key) { return facts.contains(key) ? facts.at(key) : ""; };
  const std::string name = fact("model name").empty() ? "unknown processor" : fact("model name");
  const std::string family = fact("cpu family");
  return family.empty() ? name : fmt::format("{} (family {}, model {})", name, family, fact("model"));
}

/// 0 if the file is missing, as on most virtual machines.
double megahertz_from(const char* file_of_kilohertz) {
  std::ifstream file(file_of_kilohertz);
  double kilohertz = 0;
  file >> kilohertz;
  return file ? kilohertz / 1000 : 0;
}

/// The highest cache of the first core. sysconf would know as well, but reports the whole socket's cache on virtual
/// machines.
std::int64_t last_level_cache_bytes() {
  for (int index = 4; index >= 1; --index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::int64_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit)) continue;
    return size << (unit == 'M' ? 20 : 10);
  }
  return 0;
}

}  // namespace

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::portable:
      return "portable";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512}) {
    if (usable_kernels(set) != nullptr) sets.push_back(set);
  }
  return sets;
}

namespace cpu {

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

const KernelTable& kernels_of(InstructionSet set) {
  const KernelTable* kernels = usable_kernels(set);
  if (kernels == nullptr) {
    throw DeviceError(fmt::format("cpu: no {} on this processor or in this build; {} is there", name_of(set),
                                  name_of(best_instruction_set())));
  }
  return *kernels;
}

DeviceInfo describe_processor(InstructionSet set) {
  DeviceInfo info;
  info.name = processor_name();
  info.multiprocessors = 1;
  info.memory_bytes = static_cast<std::int64_t>(physical_memory());
  info.cache_bytes = last_level_cache_bytes();
  info.clock_mhz = megahertz_from("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  info.instruction_set = name_of(set);
  return info;
}

DeviceState processor_state() {
  DeviceState state;
  const double clock = megahertz_from("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  if (clock > 0) state.clock_mhz = clock;
  return state;
}

}  // namespace cpu
}  // namespace hdpsim::kernels
