#pragma once

#include <string>
#include <vector>

#include "sim/compare/course_comparison.h"
#include "sim/results/format.h"

namespace hdpsim {

/// Where the measured step differs from the simulated one, in sentences: the step, the activities that differ most over
/// all ranks, then the passes of single ranks. Without those below a hundredth of the step.
[[nodiscard]] std::vector<std::string> differences_in_words(const CourseComparison& comparison);

/// A measured and a simulated step. For people: activities, ranks, the micro-batches that differ most, and in words
/// what differs. As CSV: a row an activity of every pass, of what is between the passes, and of the step, of every
/// rank. As JSON, schema hdpsim.trace_comparison/2, which has all fields of /1:
///   {"schema", "plan", "step": 3, "traces": 4, "marked_steps": 1, "step_time_s": {"measured", "simulated"},
///    "activities": [{"activity", "measured_s", "simulated_s", "measured_kinds_s": {}}],
///    "ranks": [{"rank", "step_time_s": {...}, "kernels_s": {...}, "activities": [...], "between_passes": [...]}],
///    "passes": [{"rank", "micro_batch", "pass": "forward", "begin_s": {...}, "seconds": {...}, "activities": [...]}],
///    "micro_batches": [{"micro_batch", "begin_s": {...}, "end_s": {...}}], "words": [...], "notes": [...]}
[[nodiscard]] std::string formatted(const CourseComparison& comparison, Format format);

}  // namespace hdpsim
