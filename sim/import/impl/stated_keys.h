#pragma once

#include <map>
#include <string>

#include "sim/document/document.h"
#include "sim/import/impl/megatron_arguments.h"

namespace hdpsim {

// The positions of what states the keys of a study, by the keys' paths.

[[nodiscard]] std::map<std::string, Position> places_of(const MegatronArguments& arguments);
/// `root`: a file of torchtitan.
[[nodiscard]] std::map<std::string, Position> places_of_torchtitan(const Value& root);

}  // namespace hdpsim
