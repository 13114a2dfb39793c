#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/length_distribution.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

/// The names of the distributions in `directory` (the project's traces/), sorted: byted, github, web, wikipedia.
[[nodiscard]] std::vector<std::string> preset_names(const std::filesystem::path& directory);

/// Reads `directory`/`name`.csv. InputError with a suggestion if there is none of this name.
[[nodiscard]] LengthDistributionPtr load_preset(std::string_view name, const std::filesystem::path& directory,
                                                const MixtureOptions& mixture = {});

}  // namespace hdpsim
