#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "kernels/spec/backend.h"

namespace hdpsim::calib {

/// Bounds of a measurement, whatever its noise. Times are sums over the samples with their additional time.
struct StoppingLimits {
  int least_runs = 10;
  int least_long_runs = 3;  ///< For work so long that most_s is over before least_runs are.
  int most_runs = 5000;
  double least_s = 0.02;
  double most_s = 0.5;
};

/// Stops measuring when the standard error of the median falls to a share `noise` of it.
struct StoppingRule {
  double noise = 0.01;
  StoppingLimits limits = {};
  /// Whether a subject has been measured often enough. Called after every batch with all samples so far, and the
  /// additional time per sample.
  [[nodiscard]] bool enough(std::span<const double> seconds, double between_s = 0) const;
};

/// Work that can be timed repeatedly, and what is known about its device.
struct Repeatable {
  std::function<std::vector<double>(int runs)> time;  ///< Seconds of each of `runs` runs.
  std::function<kernels::DeviceState()> state;
  double between_s = 0;         ///< Additional time per run, such as for emptying the caches.
  double least_possible_s = 0;  ///< Time of the work at the physical peak: no device of this kind can be faster.
};

struct Repetition {
  std::optional<Timing> timing;  ///< Empty if stopped or refused.
  std::string refusal;           ///< Why the measurements cannot be trusted; otherwise empty.
  /// Median time of emptying the caches between the runs that were kept; empty if the device does not report it.
  std::optional<double> emptying_s;
  std::int64_t throttled = 0;   ///< Runs discarded because the device reported that it was slower than it could be.
  std::int64_t impossible = 0;  ///< Runs discarded because they were faster than least_possible_s.
};

/// Warms up, then repeats in batches until the rule is satisfied or `stop` returns true (no runs are kept then).
/// Batches during which the device throttled are discarded after a pause for cooling; so are single runs above the
/// physical peak, which are glitches of a clock. If most runs are above it, the work or the clock is wrong: refused.
[[nodiscard]] Repetition repeat(const Repeatable& work, const StoppingRule& rule, const std::function<bool()>& stop);

}  // namespace hdpsim::calib
