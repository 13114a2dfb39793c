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

/// One simulated cluster with everything that a machine points to: cost model, network, placement. Worlds that were
/// made share nothing, so each thread has its own; jobs that were added to one share its network and costs.
class World {
 public:
  /// `placement` is one of placement_names(). The mesh must fit the nodes and tp a node: what does not is reported,
  /// and the result is null.
  [[nodiscard]] static std::unique_ptr<World> make(const ClusterSpec& cluster, const DeviceProfile& profile,
                                                   const Mesh& mesh, std::string_view placement,
                                                   Diagnostics& diagnostics, const ConnectionOptions& options = {},
                                                   const NodeList& nodes = {});
  ~World();

  /// The same cluster as another job sees it, which runs beside the first one on nodes of its own. It lives as long as
  /// this world; its connections are warm. Null, with what does not fit reported, as make().
  World* add_job(const Mesh& mesh, std::string_view placement, const NodeList& nodes, Diagnostics& diagnostics);
  /// The `index`-th job that was added.
  [[nodiscard]] World& job(std::size_t index);

  [[nodiscard]] Machine& machine();
  /// By device of the cluster: how many times longer its kernels take from now on than the cluster says, for this job
  /// and those that were added. Empty: as the cluster says. O(devices of the jobs).
  void set_time_factors(const std::vector<double>& factors);
  /// All devices of the job: rank by rank, within a rank stage by stage, within a stage shard by shard.
  [[nodiscard]] std::vector<DeviceId> devices() const;
  /// What simulations asked of the profile since the last call, all jobs together.
  [[nodiscard]] Coverage take_coverage();
  /// Consecutive HDP ranks that share a node; at least 1.
  [[nodiscard]] std::int64_t ranks_per_node() const;
  /// The planners' coefficients for a model that is lowered for this mesh (work_probes.h), at `capacity` tokens a rank.
  [[nodiscard]] WorkModel work_model(const LoweringOptions& lowering, std::int64_t capacity) const;

 private:
  struct Parts;
  [[nodiscard]] static std::unique_ptr<World> place(std::unique_ptr<Parts> parts, std::string_view placement,
                                                    const NodeList& nodes, Diagnostics& diagnostics);
  explicit World(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdpsim
