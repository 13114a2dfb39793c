#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "sim/document/key.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The keys of `overheads`.
[[nodiscard]] const std::vector<KeyText>& overhead_keys();

/// `overheads: {per_step: 2 s, per_micro_batch: 5 ms}` of a study, either of which may be left out: what its framework
/// spends beside all that is modelled, in place of the profile's `overheads` of these names. `{preset: bytescale}` takes
/// both from a file of the folder `presets`, which states them with their source.
/// Returns the profile with the figures taken over. What is wrong is reported.
[[nodiscard]] std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                                  const Value& overheads,
                                                                  const std::filesystem::path& presets,
                                                                  Diagnostics& diagnostics);

}  // namespace hdpsim
