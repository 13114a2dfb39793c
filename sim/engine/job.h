#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/placement.h"
#include "sim/engine/machine.h"
#include "sim/engine/site.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/work_model.h"
#include "sim/program/program.h"

namespace hdpsim {

/// Where a job runs, and how its devices reach each other.
struct JobLayout {
  Mesh mesh;
  std::string placement = "contiguous";  ///< One of placement_names().
  NodeList nodes = {};
  ConnectionOptions connections = {};
  NicUse ring_nics = NicUse::own;  ///< Of exchanges around rings.
};

/// A training job on devices of a site: a mesh with its placement, and the machine that simulates its steps.
class Job {
 public:
  /// The mesh must fit the nodes, and tp must fit a node: what does not fit is reported, and the result is null. The
  /// site must outlive the job.
  [[nodiscard]] static std::unique_ptr<Job> make(const Site& site, const JobLayout& layout, Diagnostics& diagnostics);

  [[nodiscard]] Machine& machine() { return machine_; }
  /// By device of the cluster: how many times longer its kernels take from now on than the cluster says. Empty: as the
  /// cluster says. O(devices of the job).
  void set_time_factors(const std::vector<double>& factors);
  /// All devices: rank by rank, within a rank stage by stage, within a stage shard by shard.
  [[nodiscard]] std::vector<DeviceId> devices() const;
  /// Consecutive HDP ranks that share a node; at least 1.
  [[nodiscard]] std::int64_t ranks_per_node() const;
  /// The planners' coefficients for a model that is lowered for this mesh (work_probes.h), at `capacity` tokens per
  /// rank.
  [[nodiscard]] WorkModel work_model(const LoweringOptions& lowering, std::int64_t capacity) const;

 private:
  Job(const Site& site, const JobLayout& layout, std::unique_ptr<Placement> placement);

  const Site& site_;
  Mesh mesh_;
  std::unique_ptr<Placement> placement_;
  Machine machine_;
  bool has_time_factors_ = false;
};

}  // namespace hdpsim
