#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sim/replay/replay.h"
#include "sim/tune/tune.h"

namespace hdpsim::fuzz {

/// Replays a few steps of a study with all figures sane. `folder`: where steps.csv grows, if anywhere. Nothing if it
/// is too much work.
[[nodiscard]] std::optional<ReplayResult> replay_sanely(std::string_view text, const std::filesystem::path& folder,
                                                        bool resume);
/// The same of a search, and search.jsonl.
[[nodiscard]] std::optional<TuneResult> tune_sanely(std::string_view text, const std::filesystem::path& folder,
                                                    bool resume);

}  // namespace hdpsim::fuzz
