#pragma once

#include <string>
#include <vector>

#include "sim/trace/batch_source.h"

namespace hdpsim {

/// Notes on how a trace was used, a sentence each without a full stop: which share of it was read in which order, or
/// how often; that its halves differ; that documents are longer than the context. Empty if it was read once as it
/// stands and there is nothing to say of it.
[[nodiscard]] std::vector<std::string> trace_notes(const TraceUse& use);

}  // namespace hdpsim
