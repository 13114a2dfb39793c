#pragma once

#include <string>
#include <vector>

#include "sim/trace/batch_source.h"

namespace hdpsim {

/// Notes on how a trace was used, a sentence each without a full stop: that it was read more than once, and that
/// documents are longer than the context. Empty if neither holds.
[[nodiscard]] std::vector<std::string> trace_notes(const TraceUse& use);

}  // namespace hdpsim
