#pragma once

#include <map>
#include <string>

#include "sim/import/impl/megatron_arguments.h"

namespace hdpsim {

/// Where the arguments stand that state the keys of the study, by the keys' paths.
[[nodiscard]] std::map<std::string, Position> places_of(const MegatronArguments& arguments);

}  // namespace hdpsim
