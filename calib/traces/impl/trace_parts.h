#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "calib/traces/trace_fit.h"

namespace hdpsim::calib {

/// The source of a figure that traces determined.
inline constexpr char from_traces[] = "from traces (see provenance)";

/// A fit to traces under way: the profile so far, and the record of what came from where.
struct TraceParts {
  const Recording& recording;
  const DeviceProfile& start;
  const TraceFitOptions& options;
  DeviceProfile result;
  TraceRecord record = {};
  double gap_s = 0;          ///< From a kernel to the next one of its stream.
  bool timed_alone = false;  ///< Messages were timed by themselves, in no training.

  void keep(std::string part, std::string why) { record.kept.push_back({std::move(part), std::move(why)}); }
  /// Records what traces determined; `ratios` are measured / predicted, at least one.
  void take(std::string part, std::string how, std::string value, std::int64_t samples, std::size_t sizes,
            const SampleSet& ratios);
  /// Records a part that takes one factor, and returns it: the median of the ratios, but no rate beyond `room` times.
  double scaled_by(const std::string& part, const std::vector<double>& ratios, std::int64_t samples, double room);
  [[nodiscard]] std::string scaled_source(const std::string& source) const;
  /// Writes the finished record into the result's provenance.
  void state_provenance();
};

/// The median of at least one value.
[[nodiscard]] double median_of(std::vector<double> values);

/// Products, attention and element-wise kernels.
void take_kernels(TraceParts& parts);
/// Messages and collectives within nodes and between them.
void take_messages(TraceParts& parts);

}  // namespace hdpsim::calib
