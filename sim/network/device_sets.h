#pragma once

#include <vector>

#include "sim/cluster/placement.h"

namespace hdpsim {

/// Sets of devices that do the same collective at the same time: equally large, no device in two of them.
using DeviceSets = std::vector<std::vector<DeviceId>>;

/// The devices of all HDP ranks that hold the same shard of the same stage: one set for each of them, stage by stage.
[[nodiscard]] DeviceSets pools(const Mesh& mesh, const Placement& placement);

/// The expert groups of a mesh: ep consecutive devices each, stage by stage. A device's place in its group says which
/// of a layer's experts it has.
[[nodiscard]] DeviceSets expert_groups(const Mesh& mesh, const Placement& placement);
/// The devices that have the same experts: one set for each place of a group, stage by stage.
[[nodiscard]] DeviceSets expert_pools(const Mesh& mesh, const Placement& placement);

}  // namespace hdpsim
