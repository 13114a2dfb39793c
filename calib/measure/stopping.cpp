#include "calib/measure/stopping.h"

#include <numeric>

#include "calib/measure/summary.h"

namespace hdpsim::calib {
namespace {

double sum_of(std::span<const double> seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

class NoiseRule final : public StoppingRule {
 public:
  NoiseRule(double noise, const StoppingLimits& limits) : noise_(noise), limits_(limits) {}

  [[nodiscard]] bool enough(std::span<const double> seconds, double between_s) const override {
    const auto runs = static_cast<int>(seconds.size());
    if (runs >= limits_.most_runs) return true;
    const double total = sum_of(seconds) + static_cast<double>(runs) * between_s;
    if (total >= limits_.most_s) return runs >= limits_.least_long_runs;
    return runs >= limits_.least_runs && total >= limits_.least_s && noise_of_median(seconds) <= noise_;
  }

 private:
  double noise_;
  StoppingLimits limits_;
};

}  // namespace

std::unique_ptr<StoppingRule> stop_at_noise(double noise, const StoppingLimits& limits) {
  return std::make_unique<NoiseRule>(noise, limits);
}

}  // namespace hdpsim::calib
