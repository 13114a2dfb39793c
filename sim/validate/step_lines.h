#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hdpsim {

/// A step of a plan: the micro-batches that each of its ranks computes in it, and its time.
struct StepOfPlan {
  double micro_batches = 0;
  double seconds = 0;
};

/// T = a m + c, the time of a step by its micro-batches: what a micro-batch takes, and what a step takes besides
/// (filling and draining a pipeline, gradients, the optimizer, the host).
struct StepLine {
  double per_micro_batch = 0;  ///< a, in seconds.
  double fixed = 0;            ///< c, in seconds.
  /// c / a: what a step takes besides, in micro-batches.
  [[nodiscard]] double rest() const { return fixed / per_micro_batch; }
};

/// The line with the least squared relative errors: steps of one plan differ by an order of magnitude, and all of them
/// should count alike. Empty unless two numbers of micro-batches differ.
[[nodiscard]] std::optional<StepLine> line_through(const std::vector<StepOfPlan>& steps);

/// The lines through published steps and through their predictions, over several plans.
struct LineErrors {
  std::int64_t plans = 0;
  double micro_batch_error = 0;  ///< Median over plans of predicted a over published a, minus 1.
  double published_rest = 0;     ///< Medians over plans of c / a.
  double predicted_rest = 0;
};

/// The published and the predicted steps of one plan.
struct StepsOfPlan {
  std::vector<StepOfPlan> published;
  std::vector<StepOfPlan> predicted;
};

/// Over the plans that have both lines, with a above 0. Empty if none has.
[[nodiscard]] std::optional<LineErrors> line_errors(const std::vector<StepsOfPlan>& plans);

}  // namespace hdpsim
