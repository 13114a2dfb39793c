#pragma once

#include <cstdint>

#include "sim/base/diagnostic.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {

/// P(Z <= z) of a standard normal Z.
[[nodiscard]] double normal_cdf(double z);
[[nodiscard]] double normal_density(double z);
/// The inverse of normal_cdf to about 1e-16 relative, for p in (0, 1): algorithm AS 241 (Wichura, 1988), PPND16.
[[nodiscard]] double normal_quantile(double p);

/// The lognormal {mu, sigma} conditioned on (low, high), 0 < low < high.
class LognormalRange {
 public:
  LognormalRange(double mu, double sigma, double low, double high);

  /// P(low < X < high) before conditioning.
  [[nodiscard]] double mass() const { return high_p_ - low_p_; }
  /// P(X <= x | low < X < high).
  [[nodiscard]] double cdf(double x) const;
  /// E[X; X > x | low < X < high]: the tokens above x per document.
  [[nodiscard]] double mean_above(double x) const;
  [[nodiscard]] double quantile(double u) const;

 private:
  double mu_;
  double sigma_;
  double low_;
  double high_;
  double low_p_;
  double high_p_;
};

/// The range in which every number rounds to one of min ... max: (min - 1/2, max + 1/2).
[[nodiscard]] LognormalRange rounding_range(const Lognormal& parameters);

/// The Pareto distribution P(X > x) ~ x^-alpha on [from, to].
class TruncatedPareto {
 public:
  TruncatedPareto(double alpha, double from, double to);

  [[nodiscard]] double cdf(double x) const;
  /// E[X; X > x].
  [[nodiscard]] double mean_above(double x) const;
  [[nodiscard]] double quantile(double u) const;

 private:
  double alpha_;
  double from_;
  double to_;
  double mass_;  // mass of the untruncated distribution within [from, to]
};

/// Reports problems of parameters that both families share, by name.
void check_lognormal(const Lognormal& parameters, Diagnostics& problems);

/// Share of the documents in the tail: as given, or that of the lognormal above tail_from.
[[nodiscard]] double tail_share(const LognormalPareto& parameters);

}  // namespace hdpsim
