#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/engine/job.h"
#include "sim/engine/site.h"

namespace hdpsim {

/// One simulated cluster with the job that a study asks about and the jobs that run beside it on nodes of their own.
/// Worlds share nothing, so each thread can have its own; the jobs of a world share its network and costs.
class World {
 public:
  /// As Job::make(), on a new site.
  [[nodiscard]] static std::unique_ptr<World> make(const ClusterSpec& cluster, const DeviceProfile& profile,
                                                   const JobLayout& layout, Diagnostics& diagnostics);

  /// Adds a job that runs beside the first one; its connections are warm, whatever its layout says. False, with what
  /// does not fit reported, as Job::make().
  [[nodiscard]] bool add_neighbour(JobLayout layout, Diagnostics& diagnostics);

  [[nodiscard]] const ClusterSpec& cluster() const { return site_->cluster; }
  [[nodiscard]] Job& job() { return *job_; }
  [[nodiscard]] Job& neighbour(std::size_t index) { return *neighbours_.at(index); }
  /// The machine of the first job.
  [[nodiscard]] Machine& machine() { return job_->machine(); }
  /// Job::set_time_factors() for all jobs.
  void set_time_factors(const std::vector<double>& factors);
  /// What simulations of all jobs asked of the profile since the last call.
  [[nodiscard]] Coverage take_coverage() { return site_->watched_cost->take_coverage(); }

 private:
  World(std::unique_ptr<Site> site, std::unique_ptr<Job> job) : site_(std::move(site)), job_(std::move(job)) {}

  std::unique_ptr<Site> site_;
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<Job>> neighbours_;
};

}  // namespace hdpsim
