#include "sim/trust/error_spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/trust/student.h"

namespace hdpsim {
namespace {

constexpr double middle = 0.9;          // share of a set's errors that its spread is read from
constexpr double middle_edge = 1.6449;  // of a normal distribution, in deviations

// Interpolated linearly between neighbours.
double quantile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

FactorRange ErrorSpread::range(double share, double further) const {
  const double half = student_quantile(0.5 + share / 2, freedom) * std::hypot(scale, further);
  return {std::exp(center - half), std::exp(center + half)};
}

double ErrorSpread::probability_up_to(double factor) const {
  const double distance = std::log(factor) - center;
  if (scale > 0) return student_probability(distance / scale, freedom);
  return distance >= 0 ? 1 : 0;
}

SetErrors set_errors(const std::vector<double>& errors) {
  HDPSIM_CHECK(!errors.empty(), "a set without an error");
  std::vector<double> sorted = errors;
  std::sort(sorted.begin(), sorted.end());
  const double width = quantile(sorted, 0.5 + middle / 2) - quantile(sorted, 0.5 - middle / 2);
  return {quantile(sorted, 0.5), width / 2 / middle_edge};
}

SetErrors unsigned_set_errors(const std::vector<double>& errors) {
  HDPSIM_CHECK(!errors.empty(), "a set without an error");
  std::vector<double> sorted;
  sorted.reserve(errors.size());
  for (const double error : errors) sorted.push_back(std::abs(error));
  std::sort(sorted.begin(), sorted.end());
  return {0, quantile(sorted, middle) / middle_edge};
}

ErrorBelief ErrorBelief::for_narrower() const {
  return {.center = center, .center_sets = 1, .variance = variance, .variance_sets = 2};
}

ErrorBelief ErrorBelief::with(const std::vector<SetErrors>& sets) const {
  if (sets.empty()) return *this;
  const auto count = static_cast<double>(sets.size());
  double mean = 0;
  for (const SetErrors& set : sets) mean += set.center / count;
  double squares = 0;
  for (const SetErrors& set : sets) squares += (set.center - mean) * (set.center - mean) + set.spread * set.spread;
  const double both = center_sets + count;
  const double moved = center_sets * count / both * (mean - center) * (mean - center);
  const int freedom = variance_sets + static_cast<int>(sets.size());
  return {.center = (center_sets * center + count * mean) / both,
          .center_sets = both,
          .variance = (variance_sets * variance + squares + moved) / freedom,
          .variance_sets = freedom};
}

ErrorSpread ErrorBelief::of_new_set() const {
  HDPSIM_CHECK(center_sets > 0, "errors of which no set says anything");
  return {center, std::sqrt(variance * (1 + 1 / center_sets)), variance_sets};
}

}  // namespace hdpsim
