#pragma once

#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/results/table_sink.h"

namespace hdpsim {

/// The tables of a study's result.
enum class ResultTable {
  /// One row per run: its point, one column per path of the sweep, and everything that result.json says of it.
  runs,
  steps,   ///< One row per run and step.
  ranks,   ///< One row per run and HDP rank: busy time and breakdown, mean over the steps.
  links,   ///< One row per run and link, the busiest first: the bytes of the main job's rings over all steps, and their
           ///< share of its rate and of the time of the run; then the same for other jobs.
  memory,  ///< Samples of the ranks' memory through a run's fullest step (PlanMemory::over_time).
  /// One row per run: processor seconds of the phases of its steps (PhaseTimes), which differ between executions.
  timing,
};

/// The names of the tables in the order of ResultTable: "runs", "steps", ...
[[nodiscard]] const std::vector<std::string>& result_table_names();

/// The names of the columns with which every row begins, `point`, a path of the sweep each, `plan`, ...
void write_key_names(const RunInfo& any, TableSink& sink);
/// ... and what they have for a run.
void write_key(const RunInfo& info, TableSink& sink);

/// Writes a table of the runs. Times are seconds.
void write_table(ResultTable table, const std::vector<Run>& runs, TableSink& sink);

/// The same as the text of a file.
[[nodiscard]] std::string table_csv(ResultTable table, const std::vector<Run>& runs);

}  // namespace hdpsim
