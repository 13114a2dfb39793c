#pragma once

#include <functional>
#include <vector>

namespace hdpsim::test {

/// The gradient of `objective`, which reads `of`, by central differences.
inline std::vector<double> central_differences(std::vector<double>& of, const std::function<double()>& objective) {
  constexpr double step = 1e-5;
  std::vector<double> gradient;
  for (double& value : of) {
    const double before = value;
    value = before + step;
    const double above = objective();
    value = before - step;
    gradient.push_back((above - objective()) / (2 * step));
    value = before;
  }
  return gradient;
}

}  // namespace hdpsim::test
