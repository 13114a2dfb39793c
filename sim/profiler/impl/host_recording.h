#pragma once

#include <filesystem>
#include <optional>

#include "sim/profiler/recording.h"

namespace hdpsim {

/// What the operators of CPUs in a trace did from the first to the last. Empty if it has none. InputError as of
/// read_kineto().
[[nodiscard]] std::optional<RankRecording> recording_of_host(const std::filesystem::path& file);

}  // namespace hdpsim
