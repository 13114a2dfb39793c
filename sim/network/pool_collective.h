#pragma once

#include <vector>

#include "sim/cluster/placement.h"
#include "sim/network/cluster_links.h"
#include "sim/network/collective.h"
#include "sim/network/collective_plan.h"

namespace hdpsim {

using DeviceSets = std::vector<std::vector<DeviceId>>;

/// The devices of all HDP ranks that hold the same shard of the same stage: one set for each of them, stage by stage.
[[nodiscard]] DeviceSets pools(const Mesh& mesh, const Placement& placement);

/// The expert groups of a mesh: ep consecutive devices each, stage by stage. A device's place in its group says which
/// of a layer's experts it has.
[[nodiscard]] DeviceSets expert_groups(const Mesh& mesh, const Placement& placement);
/// The devices that have the same experts: one set for each place of a group, stage by stage.
[[nodiscard]] DeviceSets expert_pools(const Mesh& mesh, const Placement& placement);

/// A reduce-scatter or an all-gather in all pools at once, hierarchical: see collective_plan.h.
[[nodiscard]] CollectivePlan pool_plan(const ClusterLinks& links, const Mesh& mesh, const Placement& placement);

/// A collective in several sets of devices at once, on the devices where the placement has them: so devices behind one
/// NIC divide it, and the slowest link that any of them needs, degraded or not, holds all back. Nothing else uses the
/// links. A reduce-scatter or an all-gather in all pools of a mesh, as at the end of a step, or an all-to-all in all
/// expert groups. Making one costs O(devices x nodes of a set), asking it O(1).
class PoolCollective {
 public:
  /// `links`: with the efficiency of this kind of collective.
  PoolCollective(const ClusterLinks& links, const CollectiveEfficiency& efficiency, const Mesh& mesh,
                 const Placement& placement)
      : PoolCollective(links, efficiency, pools(mesh, placement), CollectiveKind::all_gather) {}
  /// Sets that have no device in common and are equally large. A reduce-scatter takes as long as an all-gather.
  PoolCollective(const ClusterLinks& links, const CollectiveEfficiency& efficiency, const DeviceSets& sets,
                 CollectiveKind kind);

  /// `bytes`: what each device holds after an all-gather or before a reduce-scatter; of an all-to-all, what each sends,
  /// its own part included. A set of one device takes no time.
  [[nodiscard]] Duration operator()(Bytes bytes) const;

 private:
  Duration fixed_;
  double seconds_a_byte_ = 0;
};

}  // namespace hdpsim
