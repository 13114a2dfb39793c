#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/profiler/recording.h"
#include "sim/results/format.h"
#include "sim/study/study.h"

namespace hdpsim {

/// What a device does in a step, measured and simulated, in seconds.
struct ComparedActivity {
  std::string name;
  double measured_s = 0;
  double simulated_s = 0;
  /// What the measured time consists of, by kind of kernel or message.
  struct Kind {
    std::string name;
    double seconds = 0;
  };
  std::vector<Kind> kinds;
};

/// A step of a training compared with the simulated one.
struct TraceComparison {
  std::string plan;
  std::int64_t traces = 0;
  /// Steps that the profiler marked, in one trace; 0: none, and all of a trace counts as `assumed` steps.
  std::int64_t marked_steps = 0;
  std::int64_t assumed_steps = 1;
  double measured_s = 0;  ///< Of a step: the median of those marked.
  double simulated_s = 0;
  /// Attention; products and memory-bound kernels; messages that no kernel hides; copies likewise; waiting and the
  /// host. The mean over traces and over simulated ranks. Each side sums to its step.
  std::vector<ComparedActivity> activities;
};

/// The breakdown of a step of a plan, mean over all steps of a point and over ranks. Empty if it was stopped; asks
/// `stop` before every step.
[[nodiscard]] std::optional<Breakdown> mean_breakdown(const StudyPoint& point, std::size_t plan,
                                                      const std::function<bool()>& stop);

/// Compares the traces with the mean breakdown of a simulated step. What a device of a trace does is scaled from the
/// time between its first and last kernel to a step. `steps`: how many a trace without marks holds. Requires a trace
/// (checked).
[[nodiscard]] TraceComparison compare_with_traces(const Recording& recording, const Breakdown& simulated,
                                                  std::optional<std::int64_t> steps);

/// Where the steps differ, in sentences: the largest differences first, without those below a hundredth of the step.
[[nodiscard]] std::vector<std::string> differences_in_words(const TraceComparison& comparison);

/// A measured and a simulated step: for people, with what differs in words; its activities as CSV; or all of
/// it as JSON, schema `hdpsim.trace_comparison/1`.
[[nodiscard]] std::string formatted(const TraceComparison& comparison, Format format);

}  // namespace hdpsim
