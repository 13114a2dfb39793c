#pragma once

#include <string>
#include <string_view>

#include "sim/profile/device_profile.h"
#include "sim/profiler/recording.h"

namespace hdpsim::calib {

/// What traces say, for people: time by class of kernel, kernels of unknown names, and what the profile that was fitted
/// to them has from them and what it kept.
[[nodiscard]] std::string trace_report(const Recording& recording, const DeviceProfile& profile);

/// The last two of these alone; `from` heads what was taken: "from the traces".
[[nodiscard]] std::string parts_report(const TraceRecord& record, std::string_view from);

}  // namespace hdpsim::calib
