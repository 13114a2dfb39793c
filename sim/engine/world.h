#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/placement.h"
#include "sim/cost/cost_model.h"
#include "sim/cost/coverage.h"
#include "sim/engine/machine.h"
#include "sim/engine/pass_forms.h"
#include "sim/network/cluster_links.h"
#include "sim/network/network_model.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/work_model.h"
#include "sim/profile/device_profile.h"
#include "sim/program/program.h"

namespace hdpsim {

/// What all jobs of a simulated cluster share: its devices' costs and its network. Two sites share nothing, so each
/// thread can have its own.
struct Site {
  ClusterSpec cluster;
  DeviceProfile profile;
  std::unique_ptr<CostModel> cost;
  std::unique_ptr<WatchedCostModel> watched_cost;  ///< The same costs; counts what simulations ask.
  std::unique_ptr<NetworkModel> network;
  std::unique_ptr<ClusterLinks> links;  ///< At their full rates; collectives know what share of them they achieve.
};

[[nodiscard]] std::unique_ptr<Site> make_site(const ClusterSpec& cluster, const DeviceProfile& profile);

/// Where a job runs, and how its devices are connected.
struct JobLayout {
  Mesh mesh;
  std::string placement{usual_placement};  ///< One of placement_names().
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

/// One simulated cluster with the job that a study asks about and the jobs that run at the same time on nodes of their
/// own. Worlds share nothing, so each thread can have its own; the jobs of a world share its network and costs.
class World {
 public:
  /// As Job::make(), on a new site.
  [[nodiscard]] static std::unique_ptr<World> make(const ClusterSpec& cluster, const DeviceProfile& profile,
                                                   const JobLayout& layout, Diagnostics& diagnostics);

  /// Adds a job that runs at the same time as the first one; its connections are warm, whatever its layout says. False,
  /// with what does not fit reported, as Job::make().
  [[nodiscard]] bool add_neighbour(JobLayout layout, Diagnostics& diagnostics);

  [[nodiscard]] const ClusterSpec& cluster() const { return site_->cluster; }
  [[nodiscard]] Job& job() { return *job_; }
  [[nodiscard]] Job& neighbour(std::size_t index) { return *neighbours_.at(index); }
  /// The machine of the first job.
  [[nodiscard]] Machine& machine() { return job_->machine(); }
  /// What steps of the first job have in common, for simulate().
  [[nodiscard]] PassForms& forms() { return forms_; }
  /// Job::set_time_factors() for all jobs.
  void set_time_factors(const std::vector<double>& factors);
  /// What simulations of all jobs asked of the profile since the last call.
  [[nodiscard]] Coverage take_coverage() { return site_->watched_cost->take_coverage(); }

 private:
  World(std::unique_ptr<Site> site, std::unique_ptr<Job> job) : site_(std::move(site)), job_(std::move(job)) {}

  std::unique_ptr<Site> site_;
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<Job>> neighbours_;
  PassForms forms_;
};

}  // namespace hdpsim
