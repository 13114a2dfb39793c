#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calib/fit/samples.h"
#include "sim/base/units.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// What the samples do not say.
struct FitOptions {
  std::string source;  ///< In a sentence: who measured with what. The provenance of the profile.
  /// What the links' data sheets say. Where nothing is said, the fastest message over the link stands for its rate, so
  /// that a cluster's link should be declared with what messages achieve.
  std::optional<Bandwidth> nvlink_line_rate = {};
  std::optional<Bandwidth> network_line_rate = {};
  std::uint64_t seed = 1;  ///< Of the folds of the cross-validation.
};

/// The profile of a device that was measured: samples, what the simulator's tables need, and fits with their held-out
/// errors. A family without samples leaves its parts absent; nothing in the result is assumed. The result can be
/// written and read back (profile_text, read_profile).
///
/// Every coefficient comes from weighted least squares on *relative* errors, none negative, and the form of every fit
/// is the one with the smallest held-out error (simpler forms first unless another is clearly better).
///
/// Requires of the circumstances a positive peak, memory bandwidth and memory, of every attention sample blocks under
/// one mask, and of every message at least two ranks (checked).
[[nodiscard]] DeviceProfile fit_profile(const Samples& samples, const FitOptions& options = {});

}  // namespace hdpsim::calib
