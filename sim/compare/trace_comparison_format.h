#pragma once

#include <string>

#include "sim/compare/trace_comparison.h"
#include "sim/results/format.h"

namespace hdpsim {

/// A measured step beside the simulated one: for people, with what differs in words; its activities as CSV; or all of
/// it as JSON, schema `hdpsim.trace_comparison/1`.
[[nodiscard]] std::string formatted(const TraceComparison& comparison, Format format);

}  // namespace hdpsim
