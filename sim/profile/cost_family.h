#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The known errors of the fits of a family, or those that a study assumes.
struct FamilyError {
  /// Deciles of the held-out predicted / measured - 1 of one fit of the family.
  struct Residuals {
    double weight = 0;  ///< Number of held-out samples.
    std::vector<double> deciles;
  };
  std::vector<Residuals> residuals;
  /// Used without residuals: coefficient of variation of a log-normal factor of mean 1. 0: not assumed.
  double cv = 0;

  [[nodiscard]] bool known() const { return cv > 0 || !residuals.empty(); }
  /// Measured over predicted time, drawn by two numbers in [0, 1) and a standard normal one: a fit by its weight, and
  /// the quantile of its residuals, linear between deciles; or the log-normal factor. 1 if nothing is known.
  [[nodiscard]] double factor(double fit, double quantile, double normal) const;
  /// Standard deviation of that factor; for residuals computed on a fine grid of quantiles.
  [[nodiscard]] double deviation() const;
};
using FamilyErrors = std::array<FamilyError, cost_families>;

/// The errors of every family, from the fits' held-out residuals. Attention counts the kernels of this head dimension,
/// or all of them if none has it.
[[nodiscard]] FamilyErrors residual_errors(const DeviceProfile& profile, std::int64_t head_dim);

}  // namespace hdpsim
