#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/placement.h"
#include "sim/cost/coverage.h"
#include "sim/engine/machine.h"
#include "sim/model/transformer.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/work_model.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// One simulated cluster with everything that a machine points to: cost model, network, placement. Worlds share
/// nothing, so each thread has its own.
class World {
 public:
  /// `placement` is one of placement_names(). The mesh must fit the cluster and tp a node: what does not is reported,
  /// and the result is null.
  [[nodiscard]] static std::unique_ptr<World> make(const ClusterSpec& cluster, const DeviceProfile& profile,
                                                   const Mesh& mesh, std::string_view placement,
                                                   Diagnostics& diagnostics, const ConnectionOptions& options = {});
  ~World();

  [[nodiscard]] Machine& machine();
  /// What simulations on this machine asked of the profile so far.
  [[nodiscard]] const Coverage& coverage() const;
  /// Consecutive HDP ranks that share a node; at least 1.
  [[nodiscard]] std::int64_t ranks_per_node() const;
  /// The planners' coefficients for a model: from the same costs that the engine uses, at `capacity` tokens a rank.
  [[nodiscard]] WorkModel work_model(const Transformer& model, std::int64_t capacity) const;

 private:
  struct Parts;
  explicit World(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdpsim
