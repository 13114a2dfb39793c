#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/fit/fit_source.h"
#include "sim/fit/next_runs.h"
#include "sim/profile/device_profile.h"
#include "sim/validate/validation_study.h"

namespace hdpsim {

/// What a profile is fitted to, and how.
struct FitRequest {
  std::vector<FitSource> sets;  ///< At least one (checked).
  std::string data_folder;
  StudyChanges changes;                 ///< Of every row.
  std::vector<std::string> parameters;  ///< Names of fit_parameters(); none: all that the profile has.
  std::vector<std::string> rows;        ///< Texts: rows whose name has none of them are left out; none: all rows.
  double holdout = 0;                   ///< Share of the rows that are held out, in [0, 1).
  std::uint64_t seed = 1;               ///< Of the choice of rows that are held out.
  /// A key of the study, and the values to try: the fit is then that of the value with the least cross-validated error.
  std::string tried_key;
  std::vector<std::string> tried_values;
  std::optional<NextRequest> next{};  ///< Which runs to measure next is also asked. Not with a key that is tried.
  std::size_t jobs = 1;
  std::string version;
  std::function<bool()> stop = [] { return false; };
  std::function<void(const std::string&)> tell = [](const std::string&) {};  ///< Told of each step of the work.
};

/// How well some rows are predicted. Errors are |predicted / measured - 1|.
struct FitErrors {
  std::int64_t rows = 0;
  double mean = 0;
  double median = 0;
  double worst = 0;
  std::optional<double> ranking;  ///< kendall_tau() of the plans of each job, as `hdpsim validate` has it.
  std::optional<double> order;    ///< kendall_tau() of all rows.
};

/// One figure before and after the fit.
struct FitRow {
  std::string name;  ///< With the name of its set if there are several: case_in_set().
  std::string quantity;
  std::string unit;
  std::string group;  ///< Rows of one group are held out together in cross-validation.
  double measured = 0;
  double before = 0;                      ///< Predicted with the starting profile.
  double after = 0;                       ///< Predicted with the fitted profile.
  std::optional<double> cross_validated;  ///< Predicted by a fit to rows of other groups.
  bool held_out = false;                  ///< The fit has not seen it.
  bool unexplained = false;               ///< Its residual is an outlier: no parameter explains it.
};

/// Two parameters that the rows do not tell apart.
struct ConfoundedPair {
  std::string first;
  std::string second;
  double correlation = 0;
};

/// One value of the key that was tried.
struct TriedValue {
  std::string value;
  double error_after = 0;
  double error_cross_validated = 0;
  /// The mean over groups by which its cross-validated errors are larger than those of the best value, and the standard
  /// error of that mean. Both 0 for the best value.
  double excess = 0;
  double excess_deviation = 0;
};

struct FitResult {
  /// With the fitted values; its provenance has parameters, intervals, errors and rows, also those of an earlier fit to
  /// the same set from which this one started.
  DeviceProfile profile;
  std::string grouped_by;      ///< What tells the groups of cross-validation apart: "model", "mesh", "size" or "row".
  std::vector<bool> at_limit;  ///< Of the parameters of the provenance: it stands at the end of its range.
  std::vector<ConfoundedPair> confounded;
  std::vector<FitRow> rows;
  FitErrors before;  ///< Of the rows of the fit, with the starting profile.
  FitErrors after;
  FitErrors cross_validated;
  FitErrors held_out_before;  ///< Of the rows that were held out, if any.
  FitErrors held_out_after;
  double scale = 0;  ///< Robust standard deviation of ln(predicted / measured) after the fit.
  int iterations = 0;
  bool converged = false;
  std::vector<std::string> left_out;  ///< Why rows of the set have no part in it, with their number.
  std::string tried_key;
  std::vector<TriedValue> tried;  ///< By cross-validated error.
  std::optional<NextRuns> next;
};

/// Fits physical parameters of the profile of sets to their measured steps: robust, regularised least squares on log
/// ratios (robust_fit()), with slopes by finite differences of simulated steps.
///
/// Cross-validation holds each group of rows out, in at most five folds. Groups are models, or meshes, sizes or single
/// rows where there is only one of them. The fit of a fold solves the same problem with the residuals linear around the
/// whole fit, in the rows of the other folds; its rows are then simulated with the values of that fit.
///
/// Fewer rows than parameters tell some of them, or some combinations: the others keep their priors, and say so.
///
/// Returns nothing if it was stopped. InputError: unknown parameters, or some that the profile lacks; rows of one job
/// that contradict each other (most_spread); no rows; a key that cannot be set; candidates or a study of another
/// profile.
[[nodiscard]] std::optional<FitResult> fit_to_steps(const FitRequest& request);

}  // namespace hdpsim
