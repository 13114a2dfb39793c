#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/analysis/metrics.h"
#include "sim/base/units.h"

namespace hdpsim {

/// Whether the memory of a plan suffices.
enum class MemoryFit : std::uint8_t {
  fits,
  at_risk,  ///< It fits with the gaps of the allocator that are counted, and not with the largest that were measured.
  no,
};
/// "fits", "at risk", "does not fit".
[[nodiscard]] std::string_view memory_fit_text(MemoryFit fit);

/// Memory of one device, and its share of the host's.
struct MemoryLimits {
  Bytes device;
  Bytes host;
};

/// The memory of these parts where the allocator leaves the largest gaps that were measured: reserved over allocated
/// memory of 15 published runs of Llama 3 on eight B200 (SimuMax v1.2) spreads from 1.028 to 1.093, its median is 1.047
/// (the default of Recipe::fragmentation). Gaps that a study states are taken to be such a median.
[[nodiscard]] Bytes with_largest_gaps(const MemoryParts& parts);
/// The same of the fullest device.
[[nodiscard]] Bytes with_largest_gaps(const MemoryUse& memory);

/// The one verdict on memory, which all output reports.
[[nodiscard]] MemoryFit fit_of(const MemoryUse& memory, const MemoryLimits& limits);
/// The same of a run, which must have metrics. A plan that gives a rank more tokens than the capacity does not fit.
[[nodiscard]] MemoryFit fit_of(const Run& run);
[[nodiscard]] MemoryLimits limits_of(const RunInfo& info);

/// "107 GB of 80.0 GB on a device" of memory that does not fit; empty of memory that does.
[[nodiscard]] std::string excess_text(const MemoryUse& memory, const MemoryLimits& limits);
/// "79.6 GB of 80.0 GB on a device, 83.1 GB where the allocator leaves gaps of 9.3 % and not of 4.7 %"; empty of memory
/// that is not at risk.
[[nodiscard]] std::string risk_text(const MemoryUse& memory, const MemoryLimits& limits);
/// The same of a run, which must have metrics.
[[nodiscard]] std::string risk_text(const Run& run);

}  // namespace hdpsim
