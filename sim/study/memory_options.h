#pragma once

#include "sim/document/key.h"
#include "sim/model/recipe.h"

namespace hdpsim {

[[nodiscard]] const std::vector<KeyText>& memory_keys();

/// Reads `memory` of a study into `recipe`, some of which it states. All problems are reported.
void read_memory(const Value& value, Recipe& recipe, Diagnostics& diagnostics);

}  // namespace hdpsim
