#include "sim/profile/open_parameters.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace hdpsim {
namespace {

constexpr double same_value = 1e-4;  // relative: files state six digits, and times are whole picoseconds

// Whether the profile still has the figure that the fit found. Of a factor only its start is known.
bool is_as_fitted(const PhysicalParameter& parameter, const FittedParameter& fitted, const DeviceProfile& profile) {
  const std::optional<double> value = parameter.start(profile);
  if (!value || parameter.shape == PriorShape::factor) return value.has_value();
  return std::abs(*value - fitted.value) <= same_value * std::max(std::abs(fitted.value), same_value);
}

// The place of a parameter in the fit's record.
std::size_t place_of(const OpenParameter& open, const std::vector<FittedParameter>& all) {
  const auto is_it = [&](const FittedParameter& each) { return each.name == open.fitted.name; };
  return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), is_it) - all.begin());
}

}  // namespace

DeviceProfile OpenParameter::at(const DeviceProfile& profile, double value) const {
  DeviceProfile changed = profile;
  parameter->apply(changed, parameter->shape == PriorShape::factor ? value / fitted.value : value);
  return changed;
}

std::vector<OpenParameter> open_parameters(const DeviceProfile& profile) {
  std::vector<OpenParameter> open;
  if (!profile.provenance.fit) return open;
  for (const FittedParameter& fitted : profile.provenance.fit->parameters) {
    const PhysicalParameter* parameter = find_fit_parameter(fitted.name);
    const bool is_open = parameter != nullptr && fitted.p5 < fitted.p95;
    if (is_open && is_as_fitted(*parameter, fitted, profile)) open.push_back({parameter, fitted});
  }
  return open;
}

std::vector<std::vector<double>> correlation_root(const std::vector<OpenParameter>& parameters,
                                                  const DeviceProfile& profile) {
  const auto correlation = [&](std::size_t i, std::size_t j) {
    const std::size_t place = place_of(parameters[j], profile.provenance.fit->parameters);
    const std::vector<double>& stated = parameters[i].fitted.correlations;
    return place < stated.size() ? std::clamp(stated[place], -1.0, 1.0) : 0.0;
  };
  std::vector<std::vector<double>> root;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<double> row(i + 1);
    double left = 1;
    for (std::size_t j = 0; j < i; ++j) {
      double rest = correlation(i, j);
      for (std::size_t k = 0; k < j; ++k) rest -= row[k] * root[j][k];
      row[j] = root[j][j] > 0 ? rest / root[j][j] : 0;
      left -= row[j] * row[j];
    }
    row[i] = std::sqrt(std::max(0.0, left));  // digits of a file may make it less than nothing
    root.push_back(std::move(row));
  }
  return root;
}

}  // namespace hdpsim
