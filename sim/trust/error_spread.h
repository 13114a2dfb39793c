#pragma once

#include <vector>

namespace hdpsim {

/// A range of factors of a predicted figure.
struct FactorRange {
  double least = 1;
  double most = 1;
};

/// How published figures lie around predictions: log(published / predicted) is `center` + `scale` T, where T has
/// Student's distribution with `freedom` degrees of freedom.
struct ErrorSpread {
  double center = 0;
  double scale = 0;
  int freedom = 1;

  /// The factors between which the middle `share` (0 to 1, both excluded) of published / predicted lies. `further` is
  /// the relative deviation of an independent cause, which is added in squares.
  [[nodiscard]] FactorRange range(double share, double further = 0) const;
  /// The probability that published / predicted is at most `factor`, which is above 0.
  [[nodiscard]] double probability_up_to(double factor) const;
};

/// The errors of one set of published figures, in log(published / predicted): where they are and, as a standard
/// deviation, how far its figures are from there.
struct SetErrors {
  double center = 0;
  double spread = 0;
};

/// The median of errors, and half the range of their middle 90 % as the deviation of a normal distribution with that
/// range: what is farther out counts no more than the edge of the interval that is asked for. Requires an error
/// (checked).
[[nodiscard]] SetErrors set_errors(const std::vector<double>& errors);
/// The same of errors whose signs are arbitrary, such as those of the ratio of two plans: they are around 0.
[[nodiscard]] SetErrors unsigned_set_errors(const std::vector<double>& errors);

/// What is known of the errors of a kind of run: the center and the variance of a figure's error both have a
/// distribution (normal and scaled inverse chi-square, which are conjugate: Gelman et al., Bayesian Data Analysis, 3rd
/// edition, section 3.3). A set is one observation, however many figures it has, since they share their errors: of
/// them the observation is where they are, and their spread is added to its square.
struct ErrorBelief {
  double center = 0;
  double center_sets = 0;       ///< Weight of the center, in sets.
  double variance = 0.2 * 0.2;  ///< Without any set: 20 %, with the weight of one set.
  int variance_sets = 1;        ///< Weight of the variance, in sets.

  /// What is known of a narrower kind before its own sets: where its errors are, as one set of them says it, and how
  /// large they are, as two.
  [[nodiscard]] ErrorBelief for_narrower() const;
  [[nodiscard]] ErrorBelief with(const std::vector<SetErrors>& sets) const;
  /// The error of a figure of a set that is not known. Needs a set (checked).
  [[nodiscard]] ErrorSpread of_new_set() const;
};

}  // namespace hdpsim
