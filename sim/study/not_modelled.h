#pragma once

#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

/// What costs something in reality and nothing in this point, because its profile does not know it, by the profile's
/// keys: `first_contact` and `communicator` in cold steps, `memory_per_peer`, `compute_beside_communication`.
[[nodiscard]] std::vector<std::string> not_modelled(const PointSpec& point);

/// Lines for the user where a study asks for cold steps and a profile does not say what they cost; one a profile and
/// missing figure.
[[nodiscard]] std::vector<std::string> cold_step_warnings(const Study& study);

}  // namespace hdpsim
