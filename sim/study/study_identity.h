#pragma once

#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// Everything in a point's study on which its steps depend: all sections but those declared to belong to the study as a
/// whole, each a line of YAML with its value as JSON. Independent of the order of keys and of how numbers are written.
/// The cluster must be in full, and paths absolute.
[[nodiscard]] std::string identity_text(Value study);

/// The same for the sections declared to decide the simulated world: points with the same text can share it.
[[nodiscard]] std::string world_text(const Value& study);

}  // namespace hdpsim
