#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/profile/device_profile.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// Names of the shipped profiles of a device, sorted, without those whose rates others' figures imply
/// (Provenance::implied_by).
[[nodiscard]] std::vector<std::string> profiles_of(const std::string& device, Catalog& catalog);

/// The profile of a study that names none: the only one of profiles_of(). If there is none, or a choice, this is
/// reported at `where`; the result is then null.
[[nodiscard]] std::shared_ptr<const DeviceProfile> profile_of_device(const std::string& device, const Position& where,
                                                                     Catalog& catalog, Diagnostics& diagnostics);

}  // namespace hdpsim
