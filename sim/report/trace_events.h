#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/analysis/memory.h"
#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// One step, simulated or measured, as it is to be shown.
struct TracedStep {
  std::string title;  ///< Stands before the names of its processes: "predicted", or nothing.
  const Program& program;
  const Timeline& timeline;
  const Machine* machine = nullptr;     ///< On which it was simulated. Without it no devices are named, no links shown.
  std::vector<RankMemory> memory = {};  ///< Of shown ranks; others are left out.
  Bytes device_memory = {};             ///< What a device has.
};

/// Which part of it.
struct TraceSelection {
  std::vector<HdpRank> ranks;
  Duration from{};
  Duration to = Duration::max();
  /// If there are more instructions, only every second, fourth, ... turn of each loop (a layer) is shown.
  std::size_t most_instructions = 500'000;
};

/// Writes steps in the Trace Event Format (JSON object form, gzip-compressed), which ui.perfetto.dev and
/// chrome://tracing open: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
///
/// A process is an HDP rank (pid; processes of the second step follow those of the first), its threads are its
/// micro-batches and its streams, in a pipeline those of every stage. Where the timeline knows instructions, each is an
/// event ("X"), and an arrow ("s", "f") leads from the exchange of every rank to that of the next one in the ring, at
/// the time when both have posted it; otherwise micro-batches are all there is, in a pipeline their passes, with an
/// arrow from each to that on the next stage which needs it. A rank whose memory is known counts ("C") it, in steps
/// where it changes evenly. The process "links" counts how much of its rate each of the busiest links is used, as
/// link_loads(). `otherData` says what was left out, and what the time of every shown rank and stage went to. Events
/// are in the order of time.
///
/// Written piece by piece; memory is that of the shown events. The same input gives the same bytes. MachineError if the
/// file cannot be written.
void write_trace_events(const std::filesystem::path& path, const std::vector<TracedStep>& steps,
                        const TraceSelection& selection);

/// How many records Timeline::instructions of a program has: O(passes x instructions of a loop body).
[[nodiscard]] std::int64_t instructions_of(const Program& program);

}  // namespace hdpsim
