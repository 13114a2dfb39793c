#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/base/layered_times.h"
#include "sim/profiler/recording.h"

namespace hdpsim {

/// A stretch of time in which a rank does something, in microseconds of its trace. Several may overlap.
struct Work {
  double begin = 0;
  double end = 0;
  DeviceActivity activity = DeviceActivity::idle;
};

/// A message of this kind; empty: of a kind that is not known.
[[nodiscard]] DeviceActivity activity_of_message(std::optional<MessageKind> kind);
/// What a kernel of this class does; `message` is the kind of a collective, if it is known.
[[nodiscard]] DeviceActivity activity_of_kernel(KernelClass kernel, std::optional<MessageKind> message);

/// Seconds by activity.
using ActivitySeconds = std::array<double, device_activities>;

/// What a rank does at every moment: of all that overlaps, the activity that comes first in DeviceActivity.
class WorkTimes {
 public:
  /// O(n log n) time.
  explicit WorkTimes(const std::vector<Work>& work);
  /// Sums to the time between the two moments; what no work fills is idle.
  [[nodiscard]] ActivitySeconds between(double begin, double end) const;

 private:
  LayeredTimes<device_activities> times_;
};

}  // namespace hdpsim
