#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "sim/document/key.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The keys of `overheads`.
[[nodiscard]] const std::vector<KeyText>& overhead_keys();

/// `overheads: {per_step: 2 s, per_micro_batch: 5 ms}` of a study, both optional: the time of its framework beyond all
/// that is modelled, instead of the profile's `overheads` of these names. `{preset: bytescale}` takes both from a file
/// of the folder `presets`, which states them with their source, unless they stand beside it.
/// Returns the profile with these figures. Problems are reported.
[[nodiscard]] std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                                  const Value& overheads,
                                                                  const std::filesystem::path& presets,
                                                                  Diagnostics& diagnostics);

}  // namespace hdpsim
