#pragma once

#include <cstdint>

#include "sim/plan/plan.h"
#include "sim/plan/work_model.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// The pool on which a batch runs.
struct BoundedPool {
  std::int64_t ranks = 1;
  std::int64_t capacity = 1;  ///< Tokens of a rank in a micro-batch.
  std::int64_t stages = 1;    ///< Of every rank's pipeline.
};

/// Seconds that no plan of whole sequences without offload beats in plan_time(), whatever its groups; of other plans
/// see bounds_that_hold(). Each says what keeps a step from being shorter.
struct StepBounds {
  double area = 0;      ///< The work of all sequences, spread evenly over the ranks without any ring.
  double memory = 0;    ///< The same with every sequence on at least the ranks that hold it, and the work that adds.
  double capacity = 0;  ///< `memory`, and the fixed costs of as many micro-batches as hold the batch's tokens.
  double longest = 0;   ///< The longest sequence on the ranks on which it ends first.
  double fill = 0;      ///< More for `longest`, which the stages of a pipeline run one after another.
  /// The whole step, where stages wait as in a 1F1B schedule.
  [[nodiscard]] double step() const;
  /// The name of the one that step() rests on: `area`, `memory`, `capacity` or `longest`.
  [[nodiscard]] const char* reason() const;
};

/// From WorkModel::lower_bound() of the estimate. All are 0 for a batch without sequences. A sequence that not even all
/// ranks hold counts as one on all of them.
/// O(n + ranks).
[[nodiscard]] StepBounds step_bounds(const Batch& batch, const BoundedPool& pool, const WorkModel& estimate);

/// Those of step_bounds() that hold for this plan of the batch: `area` alone where a cut asks for its own
/// exchange (own_exchange()) or a sequence runs chunk after chunk (has_chunks_in_order()), as neither needs ranks that
/// hold a sequence together; 0 in place of the others.
[[nodiscard]] StepBounds bounds_that_hold(const StepBounds& bounds, const Plan& plan);

}  // namespace hdpsim
