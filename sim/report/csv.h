#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"

namespace hdpsim {

/// A field as CSV wants it (RFC 4180): quoted only when it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

/// The tables of a study's result.
enum class ResultTable {
  runs,    ///< One row a run: its point, one column a path of the sweep, and everything that result.json says of it.
  steps,   ///< One row a run and step.
  ranks,   ///< One row a run and HDP rank: busy time and breakdown, mean over the steps.
  links,   ///< One row a run and link, the busiest first: what the rings of the main job sent over it in all steps, and
           ///< the share of its rate and of the time of the run that this is; then the same of what other jobs sent.
  memory,  ///< Rows of a run's fullest step: a rank's memory through the step by samples (PlanMemory::over_time).
  timing,  ///< One row a run: processor seconds of the phases of its steps (PhaseTimes), which differ from one
           ///< execution to the next.
};

/// "runs", "steps", ...: in the order of ResultTable.
[[nodiscard]] const std::vector<std::string>& result_table_names();

/// Takes a table cell by cell, row by row. The first row holds the names of the columns.
class TableSink {
 public:
  virtual ~TableSink() = default;
  virtual void text(std::string_view text) = 0;
  virtual void count(std::int64_t count) = 0;
  virtual void number(double number) = 0;
  virtual void flag(bool flag) = 0;
  virtual void value(const Value& value) = 0;  ///< Of a sweep.
  virtual void nothing() = 0;                  ///< Not known, or not asked for.
  virtual void end_row() = 0;
};

/// What `write` puts into the sink, as CSV: numbers are the shortest that read back as themselves.
[[nodiscard]] std::string csv_text(const std::function<void(TableSink&)>& write);

/// Times are seconds.
void write_table(ResultTable table, const std::vector<Run>& runs, TableSink& sink);

/// The same as a file.
[[nodiscard]] std::string table_csv(ResultTable table, const std::vector<Run>& runs);

}  // namespace hdpsim
