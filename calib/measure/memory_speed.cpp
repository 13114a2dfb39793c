#include "calib/measure/memory_speed.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "calib/measure/collect.h"
#include "calib/measure/summary.h"

namespace hdpsim::calib {
namespace {

constexpr std::size_t least_rounds = 8;
constexpr double least_difference = 0.02;  // between two emptying times: closer ones do not determine a slope
constexpr double usual_emptying = 0.25;    // quantile: kernels also take the lower quartile of their rounds

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return percentile(values, at);
}

/// By how many percent the time of a subject rises when emptying takes one percent longer.
double slope(const std::vector<const Measurement*>& rounds) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double emptying = std::log(*rounds[i]->emptying_s / *rounds[j]->emptying_s);
      if (std::abs(emptying) < least_difference) continue;
      slopes.push_back(std::log(rounds[i]->timing.median_s / rounds[j]->timing.median_s) / emptying);
    }
  }
  if (slopes.size() < least_rounds) return 0;
  return std::clamp(quantile(std::move(slopes), 0.5), 0.0, 1.0);
}

/// The median times of all rounds, each multiplied by its factor.
std::vector<double> medians(const std::vector<const Measurement*>& rounds, const std::vector<double>& factors) {
  std::vector<double> found;
  for (std::size_t i = 0; i < rounds.size(); ++i) found.push_back(rounds[i]->timing.median_s * factors[i]);
  return found;
}

/// The factors that correct every round to the usual emptying time; 1 if that does not make the rounds more alike.
std::vector<double> factors_to(double usual, const std::vector<const Measurement*>& rounds) {
  const std::vector<double> ones(rounds.size(), 1);
  const double s = slope(rounds);
  std::vector<double> factors;
  factors.reserve(rounds.size());
  for (const Measurement* round : rounds) factors.push_back(std::pow(usual / *round->emptying_s, s));
  const double at = quantile_of_rounds(rounds.front()->subject);
  const double before = uncertainty_of_quantile(medians(rounds, ones), at);
  return uncertainty_of_quantile(medians(rounds, factors), at) < before ? factors : ones;
}

void scale(Timing& timing, double factor) {
  timing.median_s *= factor;
  timing.p10_s *= factor;
  timing.p90_s *= factor;
}

}  // namespace

std::vector<Measurement> at_one_speed_of_memory(std::vector<Measurement> measurements) {
  std::map<std::string, std::vector<Measurement*>> subjects;
  std::vector<double> emptyings;
  for (Measurement& measurement : measurements) {
    if (!measurement.emptying_s) continue;
    subjects[subject_text(measurement.subject)].push_back(&measurement);
    emptyings.push_back(*measurement.emptying_s);
  }
  if (emptyings.empty()) return measurements;
  const double usual = quantile(std::move(emptyings), usual_emptying);
  for (auto& [text, rounds] : subjects) {
    if (rounds.size() < least_rounds) continue;
    const std::vector<double> factors = factors_to(usual, {rounds.begin(), rounds.end()});
    for (std::size_t i = 0; i < rounds.size(); ++i) scale(rounds[i]->timing, factors[i]);
  }
  return measurements;
}

}  // namespace hdpsim::calib
