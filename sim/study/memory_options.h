#pragma once

#include "sim/document/key.h"
#include "sim/model/memory.h"

namespace hdpsim {

[[nodiscard]] const std::vector<KeyText>& memory_keys();

/// Reads `memory` of a study into `rules`, some of which it states. All problems are reported.
void read_memory(const Value& value, MemoryRules& rules, Diagnostics& diagnostics);

}  // namespace hdpsim
