#pragma once

#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// YAML of everything in a point's study that its steps depend on, whatever the order of the keys: all sections but those
/// that are declared to belong to the study as a whole. The cluster must be written in full, and paths be absolute.
[[nodiscard]] std::string identity_text(Value study);

/// The same of the sections that are declared to decide the simulated world: points of one text can share it.
[[nodiscard]] std::string world_text(const Value& study);

}  // namespace hdpsim
