#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/fit/robust_fit.h"

namespace hdpsim {

/// What is known of the coordinates of a fit, as a normal distribution, and what further rows would add to it before
/// their figures are known: in a linear model with normal noise the covariance depends on slopes alone, not on figures
/// (Chaloner and Verdinelli, "Bayesian Experimental Design: A Review", 1995).
class Posterior {
 public:
  /// `covariance` is square and positive definite; `row_variance` is the noise of a further row (row_variance()).
  Posterior(std::vector<std::vector<double>> covariance, double row_variance);
  /// Around a fit.
  explicit Posterior(const RobustFit& fit);

  /// With one more row, whose residual has these slopes S by the coordinates of covariance C:
  /// C - C S S' C / (row variance + S' C S), the formula of Sherman and Morrison. O(coordinates^2).
  [[nodiscard]] Posterior with_row(const std::vector<double>& slopes) const;

  [[nodiscard]] std::size_t coordinates() const { return covariance_.size(); }
  /// The standard deviation of a coordinate.
  [[nodiscard]] double deviation(std::size_t coordinate) const;
  /// The standard deviation of a figure that has these slopes: sqrt(S' C S).
  [[nodiscard]] double deviation_along(const std::vector<double>& slopes) const;

 private:
  [[nodiscard]] std::vector<double> times(const std::vector<double>& slopes) const;

  std::vector<std::vector<double>> covariance_;
  double row_variance_;
};

/// How widely spread is what one asks about; smaller is better known.
using PosteriorWidth = std::function<double(const Posterior&)>;

/// The rows that would narrow a width most.
struct NextRows {
  double now = 0;
  std::vector<double> after_each;   ///< The width after one row alone, in the order of the rows.
  std::vector<std::size_t> order;   ///< Rows by that width, the narrowest first; equal ones in their own order.
  std::vector<std::size_t> chosen;  ///< At most two: the best, and the one that then narrows most.
  std::vector<double> after;        ///< The width after the first, and after both.
};

/// Chooses among rows of these slopes, greedily. O(rows x coordinates^2).
[[nodiscard]] NextRows choose_next_rows(const Posterior& known, const std::vector<std::vector<double>>& slopes,
                                        const PosteriorWidth& width);

}  // namespace hdpsim
