#pragma once

#include <optional>

#include "calib/fit/samples.h"
#include "sim/base/units.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The bandwidth of a line's slope. A slope of (nearly) zero, which samples of too few sizes may have, stands for the
/// fastest that can be written, 1 EB/s.
[[nodiscard]] Bandwidth bandwidth_of(double seconds_per_byte);

/// A rate to seven digits: one that a file can state and that reads back as the same number.
[[nodiscard]] FlopRate rate_of(double flops_per_second);

/// Nothing where a timing does not say how its runs lay.
[[nodiscard]] std::optional<Spread> spread_of(const Timing& timing);

}  // namespace hdpsim::calib
