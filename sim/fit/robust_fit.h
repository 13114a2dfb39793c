#pragma once

#include <functional>
#include <vector>

namespace hdpsim {

/// One coordinate of a fit: a normal prior around `start`, where the search begins, and the range in which it stays.
struct FitCoordinate {
  double start = 0;
  double width = 1;  ///< Standard deviation of the prior; positive (checked).
  double least = -1;
  double most = 1;  ///< least <= start <= most and least < most (checked).
};

/// The residuals of all rows at a point. Called O(coordinates x iterations) times; what it throws ends the fit.
using FitResiduals = std::function<std::vector<double>(const std::vector<double>&)>;

/// What a fit has found: the maximum of its posterior, and the normal distribution around it.
struct RobustFit {
  std::vector<double> at;
  std::vector<double> residuals;              ///< At `at`.
  std::vector<std::vector<double>> jacobian;  ///< Slope of every residual (outer) along every coordinate.
  double scale = 0;                           ///< Robust standard deviation of the residuals.
  std::vector<double> deviations;             ///< Posterior standard deviation of every coordinate.
  std::vector<std::vector<double>> correlations;
  /// Degrees of freedom that the rows leave for `scale`, at least 1: intervals are Student's with as many.
  int freedom = 1;
  int iterations = 0;
  bool converged = false;
};

/// Regularised robust least squares by Levenberg and Marquardt: minimises
///
///   sum over rows of c rho(r / s) + sum over coordinates of ((x - start) / width)^2 / 2
///
/// with Huber's rho, quadratic up to 1.345 s and linear beyond (95 % efficiency for normal residuals), and the scale s
/// of the residuals by Huber's proposal 2, estimated in each iteration with the rows' effective degrees of freedom and,
/// so that few rows cannot claim to be exact, one imagined residual of `usual_residual`. c makes the curvature of the
/// first sum that of the posterior, J'J / (s^2 / efficiency): Huber, "Robust Statistics", 1981, chapters 6 and 7.
/// Slopes are differences over a twentieth of a prior's width. The search ends when a step moves the point by less than
/// a twentieth of its posterior deviation. Deterministic. Requires at least one row and one coordinate (checked).
[[nodiscard]] RobustFit robust_fit(const FitResiduals& residuals, const std::vector<FitCoordinate>& coordinates,
                                   int most_iterations = 15);

/// Slopes of every residual (outer) along every coordinate at a point within all ranges (checked), as the fit takes
/// them: differences over a twentieth of a prior's width. Calls `residuals` once more than there are coordinates.
[[nodiscard]] std::vector<std::vector<double>> residual_slopes(const FitResiduals& residuals,
                                                               const std::vector<FitCoordinate>& coordinates,
                                                               const std::vector<double>& at);

/// The variance that a row has in the posterior of a fit whose residuals have this scale: scale^2 / efficiency.
[[nodiscard]] double row_variance(double scale);

/// The residual that rows are taken to have before any is seen: steps of one job, repeated, differ by 0.1 to 2.7 % (the
/// noise of real steps in calib/README.md); what a model of a step leaves out is not less.
inline constexpr double usual_residual = 0.03;

/// Whether a residual is so far out that no parameter explains it: beyond 3 robust standard deviations of the
/// residuals, where a normal residual is once in 370 rows.
[[nodiscard]] bool is_outlier(double residual, double scale);

/// The probability of each end of the intervals of fits: 90 % lie between.
inline constexpr double interval_tail = 0.05;
/// From this share of its prior's width on, a posterior says nothing that was not believed before.
inline constexpr double undetermined_share = 0.8;
/// How many posterior deviations an interval of fits reaches to either side: as Student's distribution with the fit's
/// freedom has it, because few rows know their own noise badly, but as a normal one where a deviation is about as wide
/// as the prior's, of which the rows say nothing.
[[nodiscard]] double interval_reach(double deviation, double prior_deviation, int freedom);
/// The same for what is known before any row.
[[nodiscard]] double prior_reach();
/// Two coordinates with a larger correlation than this are not told apart by the rows.
inline constexpr double confounded_correlation = 0.9;

}  // namespace hdpsim
