#pragma once

#include <optional>

#include "calib/fit/samples.h"
#include "sim/base/units.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The bandwidth of a line's slope, within what a profile may state (limits::bandwidth). A slope of (nearly) zero,
/// which samples of too few sizes or of a busy machine may have, gives the largest one.
[[nodiscard]] Bandwidth bandwidth_of(double seconds_per_byte);

/// A rate rounded to seven digits, which a file can state and which reads back exactly.
[[nodiscard]] FlopRate rate_of(double flops_per_second);

/// The spread of a timing; empty if the timing does not contain it.
[[nodiscard]] std::optional<Spread> spread_of(const Timing& timing);

}  // namespace hdpsim::calib
