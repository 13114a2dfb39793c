#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/key.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The profile in a document, with what it takes from the one that it is `like`: a file beside the document's own.
/// Empty if there are problems, which are reported. `name` becomes the profile's.
[[nodiscard]] std::optional<DeviceProfile> read_profile(const Value& written, const std::string& name,
                                                        Diagnostics& diagnostics);

/// A profile from a path (anything with a '/' or ending in .yaml) or by its name in `directory`, of today or an old one
/// (renamed_profiles.h). An unknown name is reported at `asked_at`, with the names that exist.
[[nodiscard]] std::optional<DeviceProfile> load_profile(const std::string& name_or_path, const std::string& directory,
                                                        const Position& asked_at, Diagnostics& diagnostics);

/// Names of the profiles in a directory, sorted.
[[nodiscard]] std::vector<std::string> profile_names(const std::string& directory);

/// YAML text that reads back as an equal profile. Samples are written with their times.
[[nodiscard]] std::string profile_text(const DeviceProfile& profile);

/// The declarations of the fields of that text, from which its schema comes.
[[nodiscard]] std::vector<KeyText> profile_keys();

[[nodiscard]] std::string_view profile_label_name(ProfileLabel label);

}  // namespace hdpsim
