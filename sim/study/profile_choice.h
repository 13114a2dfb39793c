#pragma once

#include <memory>
#include <string>

#include "sim/document/document.h"
#include "sim/profile/device_profile.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// The profile of a study that names none: the only shipped one of the device. If there is none, or a choice, this is
/// reported at `where`; the result is then null.
[[nodiscard]] std::shared_ptr<const DeviceProfile> profile_of_device(const std::string& device, const Position& where,
                                                                     Catalog& catalog, Diagnostics& diagnostics);

}  // namespace hdpsim
