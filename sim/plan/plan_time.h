#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/plan/work_model.h"

namespace hdpsim {

/// The planner's own forecast of a plan: what every rank does and when it is done, in seconds from the start of the
/// step.
struct PlanTime {
  std::vector<double> busy;    ///< Of every rank, without waiting for others.
  std::vector<double> finish;  ///< Of every rank: a micro-batch starts when all ranks of its group are free.
  double longest = 0;          ///< Of the micro-batches.
  /// The last finish, with what a pipeline of so many stages takes to fill and to drain: its longest micro-batch a stage.
  [[nodiscard]] double step(std::int64_t stages = 1) const;
};

/// Requires a plan without problems (check_plan); a deadlock is a failed check. O(micro-batches + sum of group sizes).
[[nodiscard]] PlanTime plan_time(const Plan& plan, const WorkModel& work);

}  // namespace hdpsim
