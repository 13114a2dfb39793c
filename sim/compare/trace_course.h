#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/compare/step_course.h"
#include "sim/profiler/step_trace.h"

namespace hdpsim {

/// One step of a training as the traces of its ranks tell it.
struct TracedCourse {
  StepCourse course;
  bool is_of_host = false;         ///< Operators of CPUs, not kernels of GPUs.
  std::vector<std::string> notes;  ///< Sentences on what the traces leave open.
};

/// The step of the traces to compare: `wanted`, or the first one that all of them have.
[[nodiscard]] std::optional<std::int64_t> step_of_traces(const std::vector<StepTrace>& traces,
                                                         std::optional<std::int64_t> wanted);

/// The course of a step. The rank of a trace is the one that it states, else the number behind "rank" in the name of
/// its file, else its place among the files. Reports traces without the step, and two of one rank. Where a trace has
/// the step several times, the last one counts.
[[nodiscard]] TracedCourse course_of(const std::vector<StepTrace>& traces, std::int64_t step, Diagnostics& diagnostics);

}  // namespace hdpsim
