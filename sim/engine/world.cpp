#include "sim/engine/world.h"

namespace hdpsim {

std::unique_ptr<World> World::make(const ClusterSpec& cluster, const DeviceProfile& profile, const JobLayout& layout,
                                   Diagnostics& diagnostics) {
  std::unique_ptr<Site> site = make_site(cluster, profile);
  std::unique_ptr<Job> job = Job::make(*site, layout, diagnostics);
  if (job == nullptr) return nullptr;
  return std::unique_ptr<World>(new World(std::move(site), std::move(job)));
}

bool World::add_neighbour(JobLayout layout, Diagnostics& diagnostics) {
  layout.connections = {};
  std::unique_ptr<Job> job = Job::make(*site_, layout, diagnostics);
  if (job == nullptr) return false;
  neighbours_.push_back(std::move(job));
  return true;
}

void World::set_time_factors(const std::vector<double>& factors) {
  job_->set_time_factors(factors);
  for (const auto& job : neighbours_) job->set_time_factors(factors);
}

}  // namespace hdpsim
