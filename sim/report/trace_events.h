#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/analysis/memory_use.h"
#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// One step to show, simulated or measured.
struct TracedStep {
  std::string title;  ///< Prefix of the names of its processes: "predicted"; may be empty.
  const Program& program;
  const Timeline& timeline;
  /// The machine of the simulation. If null, no devices are named and no links shown.
  const Machine* machine = nullptr;
  std::vector<RankMemory> memory = {};  ///< Memory of shown ranks; others are left out.
  Bytes device_memory = {};             ///< Memory capacity of a device.
};

/// The part of a step to show.
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
/// A process is an HDP rank (pid; processes of the second step follow those of the first); its threads are its
/// micro-batches and its streams, in a pipeline those of every stage. If the timeline has instructions, each is an
/// event ("X"), and an arrow ("s", "f") leads from the send/recv of every rank to that of the next one in the ring, at
/// the time when both have posted it. Otherwise there are only micro-batches or, in a pipeline, their passes, with an
/// arrow from each to the pass on the next stage that needs it. The memory of a rank, if known, is a counter ("C"), in
/// steps where it changes evenly. The process "links" has a counter for the used share of each of the busiest links,
/// from link_loads(). `otherData` says what was left out, and where the time of every shown rank and stage went. Events
/// are in the order of time.
///
/// The file is written piece by piece; memory is that of the shown events. The same input gives the same bytes.
/// MachineError if the file cannot be written.
void write_trace_events(const std::filesystem::path& path, const std::vector<TracedStep>& steps,
                        const TraceSelection& selection);

/// The number of records in Timeline::instructions for a program: O(passes x instructions of a loop body).
[[nodiscard]] std::int64_t instructions_of(const Program& program);

}  // namespace hdpsim
