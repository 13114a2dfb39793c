#pragma once

#include <cstdint>
#include <map>

namespace hdpsim {

/// Quantiles of any number of positive values in bounded memory: values are counted in buckets, 512 of equal width to
/// each power of two, as HdrHistogram does (hdrhistogram.org). A quantile is within 0.1 % of the exact value; the least
/// and the largest value are exact. The order of the values does not matter.
class QuantileSketch {
 public:
  /// Adds a finite value > 0 (checked).
  void add(double value);

  [[nodiscard]] std::int64_t count() const { return count_; }
  /// The value below which a share `p` (0 to 1) of the values lies: the one at place ceil(p n) of the sorted values, at
  /// least the first. Requires at least one value (checked).
  [[nodiscard]] double quantile(double p) const;

 private:
  std::map<std::int64_t, std::int64_t> counts_;  // by bucket
  std::int64_t count_ = 0;
  double least_ = 0;
  double largest_ = 0;
};

}  // namespace hdpsim
