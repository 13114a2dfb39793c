#pragma once

#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

/// Costs that exist in reality but are zero in this point because its profile does not know them, by the profile's
/// keys: `first_contact` and `communicator` in cold steps, `memory_per_peer`, `compute_beside_communication`.
[[nodiscard]] std::vector<std::string> not_modelled(const PointSpec& point);

/// Warnings for a study that has cold steps with a profile that does not state their costs; one line per profile and
/// missing figure.
[[nodiscard]] std::vector<std::string> cold_step_warnings(const Study& study);

}  // namespace hdpsim
