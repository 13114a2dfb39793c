#pragma once

#include "calib/fit/samples.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The samples that took longer, by more than `share`, than the profile fitted to all of them predicts. Either all
/// their rounds were disturbed or the fit is wrong: more rounds decide.
///
/// Products are not checked, because their fit passes through every sample, and neither are copies.
[[nodiscard]] Samples slower_than_fitted(const Samples& samples, const DeviceProfile& profile, double share);

}  // namespace hdpsim::calib
