#include "sim/analysis/confidence.h"

#include <cmath>
#include <vector>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// The standard error of the mean over the mean.
double relative_error_of_mean(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  if (values.size() < 2) return 0;
  double mean = 0;
  for (const double value : values) mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1) / count) / mean;
}

FactorRange times(double figure, const FactorRange& range) {
  return {figure * range.least, figure * range.most};
}

}  // namespace

double deviation_of_mean(const RunResult& result) {
  std::vector<double> seconds;
  seconds.reserve(result.steps.size());
  for (const StepResult& step : result.steps) seconds.push_back(step.time.seconds());
  return relative_error_of_mean(seconds);
}

Confidence confidence_of(const RunErrors& errors, const RunResult& result, double step_time_s, double memory_use) {
  const KindErrors& of_steps = errors.step_time;
  Confidence found;
  found.kind = text_of(errors.kind);
  found.errors_of = of_steps.kind;
  found.sets = of_steps.sets;
  found.figures = of_steps.figures;
  found.step_time_s = times(step_time_s, of_steps.spread.range(Confidence::share, deviation_of_mean(result)));
  if (errors.memory) found.fits = errors.memory->spread.probability_up_to(1 / memory_use);
  return found;
}

std::optional<FactorRange> speedup_range(const RunErrors& errors, const RunResult& baseline, const RunResult& result,
                                         double speedup) {
  HDPSIM_CHECK(baseline.steps.size() == result.steps.size(), "{} steps against {}", result.steps.size(),
               baseline.steps.size());
  if (!errors.speedup) return std::nullopt;
  std::vector<double> ratios;
  ratios.reserve(result.steps.size());
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    ratios.push_back(baseline.steps[i].time.seconds() / result.steps[i].time.seconds());
  }
  return times(speedup, errors.speedup->spread.range(Confidence::share, relative_error_of_mean(ratios)));
}

}  // namespace hdpsim
