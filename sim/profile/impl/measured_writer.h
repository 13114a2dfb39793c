#pragma once

#include "sim/document/document.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The sections that only a measured profile has, as values of a document.
[[nodiscard]] Value samples_value(const MeasuredSamples& samples);
[[nodiscard]] Value fits_value(const ProfileFits& fits);

}  // namespace hdpsim
