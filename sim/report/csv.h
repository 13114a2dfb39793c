#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/report/metrics.h"

namespace hdpsim {

/// A field as CSV wants it (RFC 4180): quoted only when it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

// Each file starts with one line of column names; numbers are the shortest that read back as themselves; times are
// seconds.

/// One row a run: its point, one column a path of the sweep, and everything that result.json says of it.
[[nodiscard]] std::string runs_csv(const std::vector<Run>& runs);
/// One row a run and step.
[[nodiscard]] std::string steps_csv(const std::vector<Run>& runs);
/// One row a run and HDP rank: busy time and breakdown, mean over the steps.
[[nodiscard]] std::string ranks_csv(const std::vector<Run>& runs);
/// One row a run and link, the busiest first: what the rings of the main job sent over it in all steps, and the share
/// of its rate and of the time of the run that this is; then the same of all that other jobs sent.
[[nodiscard]] std::string links_csv(const std::vector<Run>& runs);
/// Rows of a run's fullest step: a rank's memory through the step, sample by sample (PlanMemory::over_time).
[[nodiscard]] std::string memory_csv(const std::vector<Run>& runs);
/// One row a run: processor seconds of the phases of its steps (PhaseTimes), which differ from one execution to the
/// next.
[[nodiscard]] std::string timing_csv(const std::vector<Run>& runs);

}  // namespace hdpsim
