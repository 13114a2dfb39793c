#pragma once

#include <vector>

#include "sim/cluster/placement.h"
#include "sim/network/cluster_links.h"
#include "sim/network/collective.h"
#include "sim/network/collective_plan.h"

namespace hdpsim {

/// The devices of all HDP ranks that hold the same shard of the same stage: one set for each of them, stage by stage.
[[nodiscard]] std::vector<std::vector<DeviceId>> pools(const Mesh& mesh, const Placement& placement);

/// A reduce-scatter or an all-gather in all of them at once, hierarchical: see collective_plan.h.
[[nodiscard]] CollectivePlan pool_plan(const ClusterLinks& links, const Mesh& mesh, const Placement& placement);

/// A reduce-scatter or an all-gather in all pools of a mesh at once, as at the end of a step, on the devices where the
/// placement has them: so devices behind one NIC divide it, and the slowest link that any of them needs, degraded or
/// not, holds all back. Nothing else uses the links.
class PoolCollective {
 public:
  /// `links`: with the efficiency of this kind of collective.
  PoolCollective(const ClusterLinks& links, const CollectiveEfficiency& efficiency, const Mesh& mesh,
                 const Placement& placement);

  /// `bytes`: what each device holds after an all-gather or before a reduce-scatter. A pool of one device takes no
  /// time.
  [[nodiscard]] Duration operator()(Bytes bytes) const;

 private:
  Duration fixed_;
  double seconds_a_byte_ = 0;
};

}  // namespace hdpsim
