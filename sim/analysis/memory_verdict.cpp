#include "sim/analysis/memory_verdict.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

constexpr double median_gaps = 0.047;
constexpr double largest_gaps = 0.093;
constexpr double largest_over_median = largest_gaps / median_gaps;

double percent_of_allocated(Bytes gaps, const MemoryParts& parts) {
  return 100 * static_cast<double>(gaps.count()) / static_cast<double>(parts.allocated().count());
}

}  // namespace

std::string_view memory_fit_text(MemoryFit fit) {
  switch (fit) {
    case MemoryFit::fits:
      return "fits";
    case MemoryFit::at_risk:
      return "at risk";
    case MemoryFit::no:
      return "does not fit";
  }
  return "";
}

Bytes with_largest_gaps(const MemoryParts& parts) {
  return parts.total() + parts[MemoryPart::fragmentation].scaled(largest_over_median - 1);
}

Bytes with_largest_gaps(const MemoryUse& memory) {
  return memory.device + memory.parts[MemoryPart::fragmentation].scaled(largest_over_median - 1);
}

MemoryFit fit_of(const MemoryUse& memory, const MemoryLimits& limits) {
  if (memory.device > limits.device || memory.host > limits.host) return MemoryFit::no;
  return with_largest_gaps(memory) > limits.device ? MemoryFit::at_risk : MemoryFit::fits;
}

MemoryFit fit_of(const Run& run) {
  return run.metrics.fits ? fit_of(run.metrics.memory, limits_of(run.info)) : MemoryFit::no;
}

MemoryLimits limits_of(const RunInfo& info) {
  return {info.device_memory, info.host_memory};
}

std::string excess_text(const MemoryUse& memory, const MemoryLimits& limits) {
  if (memory.device > limits.device) {
    return fmt::format("{} of {} on a device", bytes_text(memory.device), bytes_text(limits.device));
  }
  if (memory.host <= limits.host) return {};
  return fmt::format("{} of {} of the host", bytes_text(memory.host), bytes_text(limits.host));
}

std::string risk_text(const MemoryUse& memory, const MemoryLimits& limits) {
  if (fit_of(memory, limits) != MemoryFit::at_risk) return {};
  const Bytes gaps = memory.parts[MemoryPart::fragmentation];
  return fmt::format("{} of {} on a device, {} where the allocator leaves gaps of {:.1f} % and not of {:.1f} %",
                     bytes_text(memory.device), bytes_text(limits.device), bytes_text(with_largest_gaps(memory)),
                     percent_of_allocated(gaps.scaled(largest_over_median), memory.parts),
                     percent_of_allocated(gaps, memory.parts));
}

std::string risk_text(const Run& run) {
  return fit_of(run) == MemoryFit::at_risk ? risk_text(run.metrics.memory, limits_of(run.info)) : "";
}

}  // namespace hdpsim
