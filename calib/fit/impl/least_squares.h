#pragma once

#include <vector>

namespace hdpsim::calib {

/// The equations of a linear law: time = sum over terms of coefficient x feature, with a row per sample.
struct Equations {
  std::vector<std::vector<double>> features;  ///< By sample, then by term.
  std::vector<double> seconds;                ///< Measured times; positive.
};

/// The coefficients, none negative, that minimise the sum of squared *relative* errors,
///
///   sum over samples of w_i ((sum over terms of c_j x_ij) / t_i - 1)^2,
///
/// by the active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23). The weights are
/// Huber's, iterated: a sample that lies several times the typical error off (a disturbed measurement) counts
/// linearly, not squared.
///
/// A term whose features are all zero gets zero. No samples: all coefficients are zero.
[[nodiscard]] std::vector<double> relative_least_squares(const Equations& equations);

/// The law at one sample.
[[nodiscard]] double evaluate(const std::vector<double>& coefficients, const std::vector<double>& features);

}  // namespace hdpsim::calib
