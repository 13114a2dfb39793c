#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/work_model.h"

namespace hdpsim {

/// The planner's own estimate of a plan: when each rank is busy and when it is done, in seconds from the start of the
/// step.
struct PlanTime {
  std::vector<double> busy;  ///< Busy time of every rank, without waiting for others.
  /// End of every rank: a micro-batch starts when all ranks of its group are free.
  std::vector<double> finish;
  double longest = 0;  ///< Time of the longest micro-batch.
  /// The last finish, plus the time for a pipeline of `stages` stages to fill and drain: (stages - 1) times the longest
  /// micro-batch.
  [[nodiscard]] double step(std::int64_t stages = 1) const;
};

/// `plan` must be without problems (check_plan); a deadlock is a failed check. O(micro-batches + sum of group sizes).
[[nodiscard]] PlanTime plan_time(const Plan& plan, const WorkModel& work);

}  // namespace hdpsim
