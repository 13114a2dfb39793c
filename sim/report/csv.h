#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"

namespace hdpsim {

/// A CSV field (RFC 4180): quoted only if it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

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

/// Receives a table cell by cell, row by row. The first row holds the names of the columns.
class TableSink {
 public:
  virtual ~TableSink() = default;
  virtual void text(std::string_view text) = 0;
  virtual void count(std::int64_t count) = 0;
  virtual void number(double number) = 0;
  virtual void flag(bool flag) = 0;
  virtual void value(const Value& value) = 0;  ///< A value of a sweep.
  virtual void nothing() = 0;                  ///< A value that is not known, or was not asked for.
  virtual void end_row() = 0;
};

/// The cells that `write` puts into the sink, as CSV: numbers are the shortest that read back exactly.
[[nodiscard]] std::string csv_text(const std::function<void(TableSink&)>& write);

/// Writes a table of the runs. Times are seconds.
void write_table(ResultTable table, const std::vector<Run>& runs, TableSink& sink);

/// The same as the text of a file.
[[nodiscard]] std::string table_csv(ResultTable table, const std::vector<Run>& runs);

}  // namespace hdpsim
