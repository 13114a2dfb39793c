#pragma once

#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/traces/trace_fit.h"
#include "sim/profile/trace_record.h"

namespace hdpsim::calib {

/// Messages and collectives that were timed by themselves, without anything that they could wait for.
struct MeasuredMessages {
  std::vector<MessageTiming> timings;
  std::vector<TracedFile> files;  ///< Where they stand, and how many in each.
  std::string nccl;               ///< Version; may be empty.
};

/// The starting profile with the links that these messages show, taken as those of traces are: curves where sizes are
/// many, lines where they are few. Everything else is kept. Label `traced`; provenance.traces says what came from
/// where.
[[nodiscard]] DeviceProfile fit_to_messages(const MeasuredMessages& messages, const DeviceProfile& start,
                                            const TraceFitOptions& options);

}  // namespace hdpsim::calib
