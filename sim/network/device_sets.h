#pragma once

#include <vector>

#include "sim/cluster/placement.h"

namespace hdpsim {

/// Sets of devices that run the same collective at the same time: all of one size, no device in two of them.
using DeviceSets = std::vector<std::vector<DeviceId>>;

/// The devices of all HDP ranks that hold the same shard of the same stage: one set per shard, stage by stage.
[[nodiscard]] DeviceSets pools(const Mesh& mesh, const Placement& placement);

/// The devices of each pool that shard states among each other (Mesh::shard_ranks), and those that hold the same shard:
/// one set per group or place in a group, pool by pool.
[[nodiscard]] DeviceSets shard_groups(const Mesh& mesh, const Placement& placement);
[[nodiscard]] DeviceSets shard_replicas(const Mesh& mesh, const Placement& placement);

/// The expert groups of a mesh: ep consecutive devices each, stage by stage. A device's place in its group decides
/// which of a layer's experts it has.
[[nodiscard]] DeviceSets expert_groups(const Mesh& mesh, const Placement& placement);
/// The devices that have the same experts: one set per place in a group, stage by stage.
[[nodiscard]] DeviceSets expert_pools(const Mesh& mesh, const Placement& placement);

}  // namespace hdpsim
