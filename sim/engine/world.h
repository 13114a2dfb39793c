#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/placement.h"
#include "sim/cost/coverage.h"
#include "sim/engine/machine.h"
#include "sim/model/experts.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/work_model.h"
#include "sim/profile/device_profile.h"
#include "sim/program/program.h"

namespace hdpsim {

/// One simulated cluster with everything that a Machine points to: cost model, network, placement. Worlds from make()
/// share nothing, so that each thread can have its own; jobs from add_job() share their world's network and cost model.
class World {
 public:
  /// `placement` is one of placement_names(). The mesh must fit the nodes, and tp must fit a node; otherwise the
  /// problem is reported, and the result is null.
  [[nodiscard]] static std::unique_ptr<World> make(const ClusterSpec& cluster, const DeviceProfile& profile,
                                                   const Mesh& mesh, std::string_view placement,
                                                   Diagnostics& diagnostics, const ConnectionOptions& options = {},
                                                   const NodeList& nodes = {});
  ~World();

  /// Adds a job that runs at the same time as the first one, on its own nodes, and returns the cluster as this job sees
  /// it. The result lives as long as this world; its connections are warm. Null where make() returns null, with the
  /// problem reported.
  World* add_job(const Mesh& mesh, std::string_view placement, const NodeList& nodes, Diagnostics& diagnostics);
  /// The `index`-th job that was added.
  [[nodiscard]] World& job(std::size_t index);

  [[nodiscard]] Machine& machine();
  /// Sets how many times longer the kernels of each device take from now on than the cluster says, for this job and the
  /// added ones. `factors` has one element per device of the cluster; if empty, kernels take as long as the cluster
  /// says. O(devices of the jobs).
  void set_time_factors(const std::vector<double>& factors);
  /// All devices of the job in the order of rank, stage and shard.
  [[nodiscard]] std::vector<DeviceId> devices() const;
  /// The operations that the simulations of all jobs have asked of the profile since the last call.
  [[nodiscard]] Coverage take_coverage();
  /// Consecutive HDP ranks that share a node; at least 1.
  [[nodiscard]] std::int64_t ranks_per_node() const;
  /// The planners' coefficients for a model that is lowered for this mesh, at `capacity` tokens per rank
  /// (work_probes.h).
  [[nodiscard]] WorkModel work_model(const LoweringOptions& lowering, std::int64_t capacity) const;

 private:
  struct Parts;
  [[nodiscard]] static std::unique_ptr<World> place(std::unique_ptr<Parts> parts, std::string_view placement,
                                                    const NodeList& nodes, Diagnostics& diagnostics);
  explicit World(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdpsim
