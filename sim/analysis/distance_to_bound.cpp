#include "sim/analysis/distance_to_bound.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim {

DistanceToBound distance_to_bound(const PlannedTime& planned, Duration step) {
  const std::vector<double>& busy = planned.busy;
  HDPSIM_CHECK(!busy.empty(), "a plan without ranks");
  const double sum = std::accumulate(busy.begin(), busy.end(), 0.0);
  const Duration mean = Duration::seconds(sum / static_cast<double>(busy.size()));
  const Duration most = Duration::seconds(*std::max_element(busy.begin(), busy.end()));
  const Duration estimate = Duration::seconds(planned.estimate);
  return {.bound = planned.bound + planned.ending,
          .reason = planned.reason,
          .ending = planned.ending,
          .estimate = estimate + planned.ending,
          .added = mean - planned.bound,
          .uneven = most - mean,
          .waiting = estimate - most,
          .unknown_to_plan = step - planned.ending - estimate};
}

}  // namespace hdpsim
