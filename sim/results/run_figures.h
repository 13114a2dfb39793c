#pragma once

#include "sim/analysis/metrics.h"
#include "sim/results/figure_table.h"

namespace hdpsim {

/// A step of a run.
struct RunStep {
  const Run* run = nullptr;
  const StepResult* step = nullptr;
};
/// A worker of a run: an HDP rank, or in a pipeline one of its stages.
struct RunRank {
  const Run* run = nullptr;
  std::size_t worker = 0;
  bool names_stage = false;  ///< Whether any run of the table has several stages.
};
/// A link of a run.
struct RunLink {
  const Run* run = nullptr;
  const LinkUse* link = nullptr;
};
/// The memory of a rank at one moment of a run's fullest step.
struct RunMemory {
  const Run* run = nullptr;
  const RankMemory* rank = nullptr;
  const MemorySample* sample = nullptr;
};

/// The figures of the tables of a study, each declared once; those of a run are also what result.json says of it.
[[nodiscard]] const FigureTable<Run>& run_figures();
[[nodiscard]] const FigureTable<RunStep>& step_figures();
[[nodiscard]] const FigureTable<RunRank>& rank_figures();
[[nodiscard]] const FigureTable<RunLink>& link_figures();
[[nodiscard]] const FigureTable<RunMemory>& memory_figures();
[[nodiscard]] const FigureTable<Run>& timing_figures();

/// The use of a trace, in result.json and replay.json.
[[nodiscard]] const FigureTable<TraceUse>& trace_figures();

// Figures that several tables have: of a part of a row, for FigureTable::part().

/// A column each activity, and what is booked as it.
[[nodiscard]] const FigureTable<Breakdown>& breakdown_figures();
/// `busy_min_s`, ...
[[nodiscard]] const FigureTable<BusyTimes>& busy_figures();
/// The peaks of the device and of the host.
[[nodiscard]] const FigureTable<MemoryUse>& peak_figures();
/// Peers and groups.
[[nodiscard]] const FigureTable<ConnectionUse>& connection_figures();
/// Loaders, their memory and connections.
[[nodiscard]] const FigureTable<LoaderUse>& loader_figures();

/// The memory of connections.
[[nodiscard]] FigureText connection_memory_text();
/// The events of a simulation.
[[nodiscard]] FigureText events_text();

}  // namespace hdpsim
