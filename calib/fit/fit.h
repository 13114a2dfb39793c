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
  std::string source;      ///< A sentence: who measured with what. The provenance of the profile.
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

/// The samples that took longer, by more than `share`, than the profile fitted to all of them predicts. Either all
/// their rounds were disturbed or the fit is wrong: more rounds decide.
///
/// Products are not checked, because their fit passes through every sample, and neither are copies.
[[nodiscard]] Samples slower_than_fitted(const Samples& samples, const DeviceProfile& profile, double share);

}  // namespace hdpsim::calib
