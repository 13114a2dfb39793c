#pragma once

#include <string>
#include <vector>

#include "calib/measure/sample_file.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// Takes from `like` every part that a fitted profile has no samples of, and names them for people. A part that was
/// taken names `like` in its source. Requires kinds of attention to be those of samples in `profile`.
[[nodiscard]] std::vector<std::string> take_missing_parts(DeviceProfile& profile, const DeviceProfile& like,
                                                          const SampleHeader& header);

}  // namespace hdpsim::calib
