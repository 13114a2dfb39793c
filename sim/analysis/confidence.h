#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/analysis/step_result.h"
#include "sim/trust/published_errors.h"

namespace hdpsim {

/// How sure a run's figures are, by the errors of published figures of its kind. An interval holds 90 % of the
/// published figures, had they been predicted as this one is.
///
/// Where a study has `uncertainty`, its intervals are another thing: how far the errors of the profile's fits and slow
/// nodes carry, whatever else is not modelled. Errors of costs are in published errors already, so that the two are not
/// added up: these intervals are the ones to decide by, and those say which cost to measure.
struct Confidence {
  static constexpr double share = 0.9;

  std::string kind;                      ///< Of the run.
  std::string errors_of;                 ///< The kind whose published figures say it: the run's own or a wider one.
  std::int64_t sets = 0;                 ///< Published sets of that kind, ...
  std::int64_t figures = 0;              ///< ... and their step times.
  FactorRange step_time_s;               ///< Of the mean step time, in seconds.
  std::optional<FactorRange> speedup{};  ///< Empty without one, and of the baseline itself.
  /// The probability that a device's memory suffices. Empty where no memory was published.
  std::optional<double> fits{};
};

/// The relative deviation of a mean of so many steps from that of all steps: how much batches differ. 0 of one step.
[[nodiscard]] double deviation_of_mean(const RunResult& result);

/// `step_time_s` is the mean step time, `memory_use` what the fullest device needs of what it has. The error of a step
/// and the draw of its batches are independent.
[[nodiscard]] Confidence confidence_of(const RunErrors& errors, const RunResult& result, double step_time_s,
                                       double memory_use);

/// The interval of a speed-up over a baseline with the same steps: both plans read the same batches, so that only the
/// differences of their ratio count, step by step. Empty if no ratio of plans was published.
[[nodiscard]] std::optional<FactorRange> speedup_range(const RunErrors& errors, const RunResult& baseline,
                                                       const RunResult& result, double speedup);

}  // namespace hdpsim
