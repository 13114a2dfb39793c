#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/command.h"

namespace hdpsim::app {

/// `hdpsim compare TRACE... STUDY`: a training that was traced beside the simulation of a study of it.
struct CompareTraceOptions {
  std::string plan;              ///< Empty: the study's first.
  std::int64_t trace_steps = 0;  ///< Steps of a trace that marks none; 0: one.
  std::vector<std::string> set;
};

/// The paths with the study last, if one of several is a study: the others are traces of a profiler. Otherwise empty.
[[nodiscard]] std::vector<std::string> traces_and_study(std::vector<std::string> paths);

void add_compare_trace(Command command, CompareTraceOptions& options);

/// Simulates all steps of the first point of the study, the last of the paths, and prints their mean beside the traces.
int compare_trace(const std::vector<std::string>& paths, const CompareTraceOptions& options, Format format,
                  const Session& session);

}  // namespace hdpsim::app
