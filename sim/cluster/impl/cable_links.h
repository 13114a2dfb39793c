#pragma once

#include <string_view>

#include "sim/cluster/fabric_spec.h"

namespace hdpsim {

/// Reduces a cable to `share` of its rate, in both directions. `name` is its name in links.csv: `leaf0 to spine` for
/// the first cable between the two, `leaf0 to spine 2` for the third. 0: the cable is missing. False if there is no
/// such cable.
[[nodiscard]] bool degrade_cable(SwitchGraphSpec& graph, std::string_view name, double share);

}  // namespace hdpsim
