#include "sim/tune/shared_worlds.h"

#include <algorithm>

namespace hdpsim {

JobWorld SharedWorlds::take(const std::string& job, const StudyPoint& point) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) { return each.first == job; });
    if (found != kept_.end()) {
      JobWorld world = std::move(found->second);
      kept_.erase(found);
      return world;
    }
  }
  return {point.make_world(), point.lowered};
}

void SharedWorlds::give_back(std::string job, JobWorld world) {
  const std::lock_guard lock(mutex_);
  kept_.emplace_front(std::move(job), std::move(world));
  if (kept_.size() > most_kept) kept_.pop_back();
}

}  // namespace hdpsim
