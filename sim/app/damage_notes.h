#pragma once

#include <string>

#include "sim/base/seal.h"

namespace hdpsim::app {

/// Prints notes about damaged parts of kept results, the first of them one by one. `remedy` says what happens to each:
/// "simulated again".
[[nodiscard]] TellDamage damage_notes(const std::string& remedy);

}  // namespace hdpsim::app
