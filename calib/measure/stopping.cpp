#include "calib/measure/stopping.h"

#include <numeric>

#include "calib/measure/summary.h"

namespace hdpsim::calib {
namespace {

double sum_of(std::span<const double> seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

class LimitedRule : public StoppingRule {
 public:
  explicit LimitedRule(const StoppingLimits& limits) : limits_(limits) {}

  [[nodiscard]] bool enough(std::span<const double> seconds, double between_s) const final {
    const auto runs = static_cast<int>(seconds.size());
    if (runs >= limits_.most_runs) return true;
    const double total = sum_of(seconds) + static_cast<double>(runs) * between_s;
    if (total >= limits_.most_s) return runs >= limits_.least_long_runs;
    return runs >= limits_.least_runs && total >= limits_.least_s && settled(seconds);
  }

 private:
  [[nodiscard]] virtual bool settled(std::span<const double> seconds) const = 0;
  StoppingLimits limits_;
};

class NoiseRule final : public LimitedRule {
 public:
  NoiseRule(double noise, const StoppingLimits& limits) : LimitedRule(limits), noise_(noise) {}

 private:
  [[nodiscard]] bool settled(std::span<const double> seconds) const override {
    return noise_of_median(seconds) <= noise_;
  }
  double noise_;
};

class TimeRule final : public LimitedRule {
 public:
  TimeRule(double seconds, const StoppingLimits& limits) : LimitedRule(limits), seconds_(seconds) {}

 private:
  [[nodiscard]] bool settled(std::span<const double> seconds) const override { return sum_of(seconds) >= seconds_; }
  double seconds_;
};

}  // namespace

std::unique_ptr<StoppingRule> stop_at_noise(double noise, const StoppingLimits& limits) {
  return std::make_unique<NoiseRule>(noise, limits);
}

std::unique_ptr<StoppingRule> stop_after(double seconds, const StoppingLimits& limits) {
  return std::make_unique<TimeRule>(seconds, limits);
}

}  // namespace hdpsim::calib
