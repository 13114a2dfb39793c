#include "sim/plan/impl/known_speeds.h"

#include <algorithm>
#include <numeric>

namespace hdpsim {

KnownSpeeds::KnownSpeeds(const PlanningContext& context, std::int64_t step)
    : speeds_(context.rank_speeds ? context.rank_speeds(step) : std::vector<double>{}) {}

std::vector<std::int64_t> KnownSpeeds::slow_ranks() const {
  std::vector<std::int64_t> slow;
  const double fastest = speeds_.empty() ? 1 : *std::max_element(speeds_.begin(), speeds_.end());
  for (std::size_t rank = 0; rank < speeds_.size(); ++rank) {
    if (speeds_[rank] < fastest) slow.push_back(static_cast<std::int64_t>(rank));
  }
  return slow;
}

double KnownSpeeds::sum(std::int64_t ranks) const {
  return speeds_.empty() ? static_cast<double>(ranks) : std::accumulate(speeds_.begin(), speeds_.end(), 0.0);
}

double KnownSpeeds::slowest(const std::vector<std::int64_t>& ranks) const {
  if (speeds_.empty()) return 1;
  double slowest = speeds_[static_cast<std::size_t>(ranks.front())];
  for (const std::int64_t rank : ranks) slowest = std::min(slowest, speeds_[static_cast<std::size_t>(rank)]);
  return slowest;
}

}  // namespace hdpsim
