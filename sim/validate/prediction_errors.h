#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trust/published_errors.h"
#include "sim/validate/validation_summary.h"

namespace hdpsim {

/// One error of a prediction.
struct PredictionError {
  ErrorOf of = ErrorOf::step_time;
  RunKind kind;
  std::string set;
  double error = 0;  ///< log(published / predicted), of rates that of the time that they stand for.
};

/// The errors of all predicted rows to which nothing was fitted:
/// * of step times, and of rates as the times that they imply;
/// * of speed-ups over another plan, and of the ratios of the step times of every two plans of one job that are of one
///   kind of run;
/// * of memory; where a set publishes none, of its runs that are predicted to need more than their devices have, and
///   that did run: the least errors that agree with that. What other runs say of it, that they fit, is left out, so
///   that memory counts as less certain than it is.
/// O(rows, and plans squared of each job).
[[nodiscard]] std::vector<PredictionError> prediction_errors(const std::vector<ValidationRow>& rows);

/// They by set and kind of run, in the order of ErrorOf, workloads, stacks, devices and sets.
[[nodiscard]] PublishedErrors summed_up(const std::vector<PredictionError>& errors);

/// How far a kind of figure of a kind of run may be off, and whether that was so for sets that did not say it.
struct KindTrust {
  ErrorOf of = ErrorOf::step_time;
  RunKind kind;
  std::int64_t sets = 0;
  std::int64_t figures = 0;
  FactorRange range;  ///< Holds 90 % of published / predicted, by all sets.
  /// Of these figures, the share within the interval that all sets but their own make; each set counts alike.
  double covered = 0;
};

/// One for each kind that has figures, in the order of summed_up(). O(sets x rows).
[[nodiscard]] std::vector<KindTrust> trust_by_kind(const std::vector<PredictionError>& errors);

/// What is left out to see whether the errors of others hold for it: a set, or all that was published of a stack or of
/// a device, which is what a study of another one meets.
enum class LeftOut { set, stack, device };
/// The share of all figures of one sort within the interval that the others make; each set counts alike. O(sets x
/// rows).
[[nodiscard]] double covered_share(ErrorOf figure, const std::vector<PredictionError>& errors,
                                   LeftOut left_out = LeftOut::set);

/// The least probability, by the sets but its own, that the memory of a run sufficed which did run.
struct UnlikelyRun {
  std::string set;
  std::string case_name;
  double fits = 1;
};
[[nodiscard]] UnlikelyRun least_likely_run(const std::vector<ValidationRow>& rows);

}  // namespace hdpsim
