#pragma once

#include "calib/fit/samples.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The samples that took longer, by more than `share`, than the profile that was fitted to all of them says.
/// Either all their rounds were disturbed or the fit is wrong: more rounds tell.
///
/// Products have no say here, as what is fitted to them passes through every sample; neither have copies.
[[nodiscard]] Samples slower_than_fitted(const Samples& samples, const DeviceProfile& profile, double share);

}  // namespace hdpsim::calib
