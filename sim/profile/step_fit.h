#pragma once

#include <string>
#include <vector>

namespace hdpsim {

/// One parameter of a fit to measured steps, in the unit that its table states (physical_parameters.h): its value in
/// the profile from which the fit started, its prior and its posterior, both as intervals of 90 %.
struct FittedParameter {
  std::string name;
  double start = 0;
  double value = 0;
  double p5 = 0;
  double p95 = 0;
  double prior_p5 = 0;
  double prior_p95 = 0;
  /// The rows say something about it: its posterior is narrower than its prior.
  bool determined = false;
  /// With the parameters before it in the record, in their order; empty: not stated.
  std::vector<double> correlations{};
  friend bool operator==(const FittedParameter&, const FittedParameter&) = default;
};

/// One figure that a profile was fitted to: what it is, such as "step_time_s", and the case of the set.
struct FittedRow {
  std::string figure;
  std::string row;
  friend bool operator==(const FittedRow&, const FittedRow&) = default;
};

/// How the figures of a profile were fitted to measured steps. Errors are mean |predicted / measured - 1|.
struct StepFit {
  std::string start;   ///< The profile from which the fit started, and its label.
  std::string set;     ///< The name of the set of rows.
  std::string source;  ///< Where the rows come from, as the set says.
  double error_before = 0;
  double error_after = 0;
  double error_cross_validated = 0;  ///< Each group of rows predicted by a fit to the others; 0: not computed.
  std::vector<FittedParameter> parameters;
  std::vector<FittedRow> rows;
  friend bool operator==(const StepFit&, const StepFit&) = default;
};

}  // namespace hdpsim
