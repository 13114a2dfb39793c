#pragma once

#include <cstdint>
#include <span>
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
  /// Time of the longest micro-batch of every rank; of several updates, the sum of the longest of each.
  std::vector<double> longest;
  /// The last end of a rank whose pipeline of `stages` stages also fills and drains, in (stages - 1) times the longest
  /// micro-batch of the rank, once for every update.
  [[nodiscard]] double step(std::int64_t stages = 1) const;
};

/// Seconds that offload adds to a micro-batch on a rank which has `tokens` of its tokens and pairs of `area`: the waits
/// for copies that its passes do not hide and, token-wise, the activations that are computed again.
[[nodiscard]] double offload_seconds(const WorkModel& work, double area, double tokens, std::int64_t layers,
                                     double offload, bool token_wise);

/// Seconds of a micro-batch on each rank of its group, in a plan for a model of so many layers. O(spans + group size).
[[nodiscard]] double micro_batch_seconds(const MicroBatch& micro_batch, std::int64_t layers, const WorkModel& work);

/// By micro-batch, micro_batch_seconds() of its two passes; forward's share is that of its computation.
[[nodiscard]] std::vector<PassSeconds> pass_seconds(const Plan& plan, const WorkModel& work);

/// Adds up the time of a plan for a pool of so many ranks, micro-batch by micro-batch, in any order in which they can
/// run.
class PlanClock {
 public:
  explicit PlanClock(std::size_t ranks)
      : time_{std::vector<double>(ranks), std::vector<double>(ranks), std::vector<double>(ranks)} {}
  /// Runs a micro-batch after those that its ranks have run. O(group size).
  void run(std::span<const HdpRank> group, double seconds);
  [[nodiscard]] const PlanTime& time() const { return time_; }

 private:
  PlanTime time_;
};

/// `plan` must be without problems (check_plan); a deadlock is a failed check. O(micro-batches + sum of group sizes).
[[nodiscard]] PlanTime plan_time(const Plan& plan, const WorkModel& work);

}  // namespace hdpsim
