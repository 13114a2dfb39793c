#pragma once

#include <filesystem>
#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// The path that a value means: relative to the folder of its file, or to the working folder if it was given on the
/// command line.
[[nodiscard]] std::filesystem::path path_of(const Value& value);

/// True if a text that may be a name or a path can only be a path: it has a slash or ends in .yaml.
[[nodiscard]] bool looks_like_path(const std::string& text);

/// Makes every path of a study absolute, also in sweeps: `file`, `hf_config`, and `cluster`, `lengths` and `profile` if
/// they are paths.
void make_paths_absolute(Value& study);
/// Makes the relative ones start at `folder` instead of at the folder of their file.
void make_paths_start_at(const std::filesystem::path& folder, Value& study);

}  // namespace hdpsim
