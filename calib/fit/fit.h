#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calib/fit/samples.h"
#include "sim/base/units.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// Facts that the samples do not contain.
struct FitOptions {
  std::string source;  ///< A sentence: who measured with what. The provenance of the profile.
  /// Line rates from the links' data sheets. If empty, the fastest message over the link counts as its rate, so that a
  /// cluster's link should be declared with the rate that messages reach.
  std::optional<Bandwidth> nvlink_line_rate = {};
  std::optional<Bandwidth> network_line_rate = {};
  std::uint64_t seed = 1;  ///< Seed of the folds of the cross-validation.
};

/// The profile of a measured device: samples, the tables of the simulator, and fits with their held-out errors. The
/// parts of a family without samples are empty; nothing in the result is assumed. The result can be written and read
/// back (profile_text, read_profile).
///
/// Every coefficient comes from weighted least squares on *relative* errors, none negative, and the form of every fit
/// is the one with the smallest held-out error (simpler forms first unless another is clearly better).
///
/// Requires a positive peak, memory bandwidth and memory in the circumstances, blocks under one mask in every attention
/// sample, and at least two ranks in every message (checked).
[[nodiscard]] DeviceProfile fit_profile(const Samples& samples, const FitOptions& options = {});

}  // namespace hdpsim::calib
