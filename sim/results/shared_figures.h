#pragma once

#include "sim/analysis/metrics.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// What several tables tell in the same words: the figures of a part of a row, for FigureTable::part().

/// A column each activity, and what is booked as it.
[[nodiscard]] const FigureTable<Breakdown>& breakdown_figures();
/// `busy_min_s`, ...
[[nodiscard]] const FigureTable<BusyTimes>& busy_figures();
/// The peaks of the device and of the host.
[[nodiscard]] const FigureTable<MemoryUse>& peak_figures();
/// Peers and groups.
[[nodiscard]] const FigureTable<ConnectionUse>& connection_figures();

/// The memory of connections.
[[nodiscard]] FigureText connection_memory_text();
/// The events of a simulation.
[[nodiscard]] FigureText events_text();

}  // namespace hdpsim
