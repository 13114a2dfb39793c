#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// The keys of `framework`.
[[nodiscard]] const std::vector<KeyText>& framework_keys();

/// The names that `framework.preset` may have: the files of the folder, without `.yaml`.
[[nodiscard]] std::vector<std::string> framework_names(const std::filesystem::path& presets);

/// The sections of the preset of this name, without its source. Null, with a problem reported, if there is none.
[[nodiscard]] Value framework_preset(const Value& name, const std::filesystem::path& presets, Diagnostics& diagnostics);

/// What the framework of the preset of this name runs on, one of stack_names(), which its file states as `stack`.
/// "other" if it does not, or if `name` is null.
[[nodiscard]] std::string framework_stack(const Value& name, const std::filesystem::path& presets,
                                          Diagnostics& diagnostics);

/// Fills in what a study with `framework: {preset: NAME}` leaves out from the file of that name: how a release of a
/// training framework trains, as sections `mesh`, `training`, `kernels`, `memory` and `overheads` of a study, with
/// their source. What the study states itself wins, key by key. Problems are reported.
void fill_in_framework(Value& study, const std::filesystem::path& presets, Diagnostics& diagnostics);

}  // namespace hdpsim
