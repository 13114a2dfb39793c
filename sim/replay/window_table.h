#pragma once

#include <string>

#include "sim/replay/replay_summary.h"
#include "sim/report/csv.h"

namespace hdpsim {

/// Writes windows.csv, row by row. Times are seconds, lengths tokens.
void write_window_header(TableSink& sink);
void write_window(const WindowRow& row, const std::string& plan, TableSink& sink);

}  // namespace hdpsim
