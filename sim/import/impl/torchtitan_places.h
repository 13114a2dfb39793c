#pragma once

#include <map>
#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// Where the keys of a file of torchtitan stand that state the keys of the study, by the latter's paths.
[[nodiscard]] std::map<std::string, Position> places_of_torchtitan(const Value& root);

}  // namespace hdpsim
