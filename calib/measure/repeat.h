#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/measure/stopping.h"
#include "kernels/spec/backend.h"

namespace hdpsim::calib {

/// Work that can be timed again and again, and what is known about the device that does it.
struct Repeatable {
  std::function<std::vector<double>(int runs)> time;  ///< Seconds of each of so many runs.
  std::function<kernels::DeviceState()> state;
  double between_s = 0;         ///< Beside each run, such as emptying the caches.
  double least_possible_s = 0;  ///< No device of this kind can be faster: the work at the physical peak.
};

struct Repetition {
  std::optional<Timing> timing;  ///< Absent: stopped, or refused.
  std::string refusal;           ///< Why nothing that was measured can be believed; otherwise empty.
  /// Median time of emptying the caches between the runs that were kept; absent where the device does not tell.
  std::optional<double> emptying_s;
  std::int64_t throttled = 0;   ///< Runs thrown away because the device said that it ran slower than it could.
  std::int64_t impossible = 0;  ///< Runs thrown away because they were faster than least_possible_s.
};

/// Warms up, then repeats in batches until the rule has enough or `stop` says so (nothing is kept then). Batches during
/// which the device throttled are thrown away after a pause for it to cool; so are single runs above the physical peak,
/// which are glitches of a clock. If most runs are above it, the work or the clock is not what it seems: refused.
[[nodiscard]] Repetition repeat(const Repeatable& work, const StoppingRule& rule, const std::function<bool()>& stop);

}  // namespace hdpsim::calib
