#pragma once

#include <filesystem>
#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// The path that a value stands for: relative to the folder of the file in which it stands, or to the working folder if
/// it was given on the command line.
[[nodiscard]] std::filesystem::path path_of(const Value& value);

/// True for what can only be a path where a name is possible too: it has a slash or ends in .yaml.
[[nodiscard]] bool looks_like_path(const std::string& text);

/// Makes every path of a study absolute, in sweeps too: `file`, `hf_config`, and `cluster` and `profile` where they are
/// paths.
void make_paths_absolute(Value& study);

}  // namespace hdpsim
