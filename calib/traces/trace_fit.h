#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calib/fit/samples.h"
#include "sim/profile/device_profile.h"
#include "sim/profile/trace_record.h"
#include "sim/profiler/recording.h"

namespace hdpsim::calib {

struct TraceFitOptions {
  std::string source;  ///< A sentence: who fitted what. The provenance of the profile.
  std::uint64_t seed = 1;
};

/// The profile of the device that was traced, with the label `traced`. What traces determine replaces the parts of the
/// starting profile; the rest is kept, and provenance.traces says which is which and why.
///
/// Times of operations are the sums of their kernels, and a kernel gap each (the time to the next kernel of a stream,
/// which a profile counts with a kernel). Kernels that overlap with others, or with messages, take no part, except in
/// the slowdown under messages. Nor do kernels faster than the data sheet allows, whose recorded shapes cannot be
/// theirs.
///
/// Families with enough different sizes (products 8 shapes; attention of one mask, direction and head dimension 4
/// lengths over a factor of 4; element-wise kernels 6 sizes over a factor of 16; messages of one kind, link and number
/// of ranks 4 sizes over a factor of 8) are fitted as a calibration fits its samples (fit.h). For want of sizes the
/// starting profile's figures take one factor, the median of measured / predicted; those of messages keep its
/// latencies. Messages of which not all ranks were traced determine no rate where their times look like waiting.
[[nodiscard]] DeviceProfile fit_to_traces(const Recording& recording, const DeviceProfile& start,
                                          const TraceFitOptions& options);

/// Messages and collectives that were timed by themselves, without anything that they could wait for.
struct MeasuredMessages {
  std::vector<MessageTiming> timings;
  std::vector<TracedFile> files;  ///< Their paths, and how many in each.
  std::string nccl;               ///< Version; may be empty.
};

/// The starting profile with the links that these messages show, taken as those of traces are: curves where sizes are
/// many, lines where they are few. Everything else is kept. Label `traced`; provenance.traces says what came from
/// where.
[[nodiscard]] DeviceProfile fit_to_messages(const MeasuredMessages& messages, const DeviceProfile& start,
                                            const TraceFitOptions& options);

/// What traces say, for people: time by class of kernel, kernels of unknown names, and what the profile that was fitted
/// to them has from them and what it kept.
[[nodiscard]] std::string trace_report(const Recording& recording, const DeviceProfile& profile);

/// The last two of these alone; `from` heads what was taken: "from the traces".
[[nodiscard]] std::string parts_report(const TraceRecord& record, std::string_view from);

}  // namespace hdpsim::calib
