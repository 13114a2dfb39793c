#include "sim/analysis/distance_to_bound.h"

#include <algorithm>
#include <numeric>

namespace hdpsim {

DistanceToBound distance_to_bound(Duration bound, const char* reason, const PlanTime& estimate, std::int64_t stages,
                                  Duration step, Duration ending) {
  const double sum = std::accumulate(estimate.busy.begin(), estimate.busy.end(), 0.0);
  const Duration mean = Duration::seconds(sum / static_cast<double>(estimate.busy.size()));
  const Duration most = Duration::seconds(*std::max_element(estimate.busy.begin(), estimate.busy.end()));
  const Duration planned = Duration::seconds(estimate.step(stages));
  return {.bound = bound,
          .reason = reason,
          .estimate = planned,
          .added = mean - bound,
          .uneven = most - mean,
          .waiting = planned - most,
          .ending = ending,
          .unknown_to_plan = step - ending - planned};
}

}  // namespace hdpsim
