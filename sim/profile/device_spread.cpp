#include "sim/profile/device_spread.h"

#include <cmath>

namespace hdpsim {
namespace {

double normal_distribution(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

}  // namespace

// The integral of 1 - P(largest <= x) over positive x, less that of P(largest <= x) over negative x, by the trapezoidal
// rule. Values beyond 10 add less than 1e-12 for any count in use.
double expected_largest_normal(std::int64_t count) {
  constexpr double step = 1.0 / 64;
  constexpr int steps = 640;
  const auto values = static_cast<double>(count);
  double sum = 0.5 * (1 - 2 * std::pow(0.5, values));  // both ends at 0
  for (int i = 1; i < steps; ++i) {
    const double below = normal_distribution(-step * i);
    sum += -std::expm1(values * std::log1p(-below)) - std::pow(below, values);
  }
  return sum * step;
}

FamilyFactors factors_of_slowest(double cv, std::int64_t devices) {
  FamilyFactors factors;
  if (cv == 0 || devices < 2) return factors;
  const double slowest = 1 + cv * expected_largest_normal(devices);
  for (const CostFamily family : {CostFamily::attention_forward, CostFamily::attention_backward, CostFamily::gemm}) {
    factors[family] = slowest;
  }
  return factors;
}

}  // namespace hdpsim
