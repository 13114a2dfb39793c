#pragma once

#include <memory>
#include <span>

namespace hdpsim::calib {

/// Decides when a subject has been measured often enough. Called after every batch with all samples so far, and the
/// additional time per sample.
class StoppingRule {
 public:
  StoppingRule() = default;
  StoppingRule(const StoppingRule&) = delete;
  StoppingRule& operator=(const StoppingRule&) = delete;
  virtual ~StoppingRule() = default;
  [[nodiscard]] virtual bool enough(std::span<const double> seconds, double between_s = 0) const = 0;
};

/// Bounds that hold whatever a rule says. Times are sums over the samples with their additional time.
struct StoppingLimits {
  int least_runs = 10;
  int least_long_runs = 3;  ///< For work so long that most_s is over before least_runs are.
  int most_runs = 5000;
  double least_s = 0.02;
  double most_s = 0.5;
};

/// A rule that stops when the standard error of the median falls to a share `noise` of it.
[[nodiscard]] std::unique_ptr<StoppingRule> stop_at_noise(double noise, const StoppingLimits& limits = {});

}  // namespace hdpsim::calib
