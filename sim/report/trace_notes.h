#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/trace/batch_source.h"

namespace hdpsim {

/// What a reader must know of how a trace was used, a sentence each without a full stop: that it was read more than once,
/// and that documents are longer than the context. Empty if there is nothing of the kind.
[[nodiscard]] std::vector<std::string> trace_notes(const TraceUse& use);

/// All figures of it, for programs.
[[nodiscard]] nlohmann::ordered_json trace_json(const TraceUse& use);

}  // namespace hdpsim
