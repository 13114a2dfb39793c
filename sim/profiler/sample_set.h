#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hdpsim {

/// Figures of the same thing, measured again and again. Up to 4,096 of them are kept, evenly spread over all that were
/// added, so that memory does not grow with a trace.
class SampleSet {
 public:
  void add(double sample);
  /// How many were added.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] double mean() const;
  /// The value that a share of the kept ones does not exceed, linear between them. Requires one (checked).
  [[nodiscard]] double quantile(double share) const;
  [[nodiscard]] const std::vector<double>& kept() const { return kept_; }

 private:
  static constexpr std::size_t most = 4096;
  std::vector<double> kept_;
  std::int64_t count_ = 0;
  std::int64_t every_ = 1;  ///< Of so many that are added, one is kept.
  double sum_ = 0;
};

}  // namespace hdpsim
