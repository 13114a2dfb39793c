#pragma once

#include <string_view>

#include "sim/replay/replay.h"
#include "sim/tune/tune.h"

namespace hdpsim::fuzz {

/// Replays a few steps of a study with all figures sane. Nothing if it is too much work.
[[nodiscard]] std::optional<ReplayResult> replay_sanely(std::string_view text, const JournalFolder& kept);
/// The same of a search.
[[nodiscard]] std::optional<TuneResult> tune_sanely(std::string_view text, const JournalFolder& kept);

}  // namespace hdpsim::fuzz
