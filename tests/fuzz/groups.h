#pragma once

#include <string_view>
#include <vector>

#include "tests/fuzz/target.h"

namespace hdpsim::fuzz {

// The targets, a group a file.

[[nodiscard]] std::vector<Target> reader_targets();    ///< What a user's file is read by, and no more.
[[nodiscard]] std::vector<Target> study_targets();     ///< A study is run, of which one file is the input.
[[nodiscard]] std::vector<Target> search_targets();    ///< Replays and tunings.
[[nodiscard]] std::vector<Target> kept_targets();      ///< What the program itself wrote and reads again.
[[nodiscard]] std::vector<Target> timeline_targets();  ///< Plans that are simulated, timelines that are compared.
[[nodiscard]] std::vector<Target> trace_targets();     ///< A profile is fitted to what a profiler recorded.
[[nodiscard]] std::vector<Target> comm_targets();      ///< Command lines of `hdpsim comm`.

}  // namespace hdpsim::fuzz
