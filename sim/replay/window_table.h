#pragma once

#include <string>

#include "sim/replay/replay_summary.h"
#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// A row of windows.csv; its JSON stands below its plan and does not name it.
struct PlanWindow {
  const WindowRow* window = nullptr;
  const std::string* plan = nullptr;  ///< May be null where only JSON is made.
};

/// The figures of a window of steps, in windows.csv and in replay.json.
[[nodiscard]] const FigureTable<PlanWindow>& window_figures();

/// The figures of a replay's results.
[[nodiscard]] FigureSection replay_figures();

/// Writes windows.csv, row by row.
void write_window_header(TableSink& sink);
void write_window(const WindowRow& row, const std::string& plan, TableSink& sink);

}  // namespace hdpsim
