#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "sim/run/runner.h"

namespace hdpsim::app {

/// The runs of a study. Those that `hdpsim study` has left in the folder are taken from its journal, if a folder is
/// named, and the others simulated, with a display of their progress, on all processors. `then(how, runs)`, if given,
/// goes on with the same options. Empty if it was stopped, or if `then` says so.
[[nodiscard]] std::optional<std::vector<Run>> finished_runs(
    const Study& study, const std::filesystem::path& folder,
    const std::function<bool(const RunnerOptions& how, std::vector<Run>& runs)>& then = {});

}  // namespace hdpsim::app
