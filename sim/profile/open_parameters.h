#pragma once

#include <vector>

#include "sim/profile/device_profile.h"
#include "sim/profile/physical_parameters.h"

namespace hdpsim {

/// A parameter that a fit to steps has set, and that its rows leave open within an interval.
struct OpenParameter {
  const PhysicalParameter* parameter = nullptr;
  FittedParameter fitted;

  /// A copy of the profile in which the parameter has another value, in the unit of its table.
  [[nodiscard]] DeviceProfile at(const DeviceProfile& profile, double value) const;
};

/// The parameters of a fitted profile, in the order of its provenance; none of other profiles. Left out are those whose
/// figure is no longer the fitted one, because a study states its own.
[[nodiscard]] std::vector<OpenParameter> open_parameters(const DeviceProfile& profile);

/// The lower triangle L of the parameters' correlations, C = L L': standard normal numbers z that are independent
/// become L z, which has these correlations. Row i has i + 1 numbers. Parameters whose correlations the profile does
/// not state are independent of those before them.
[[nodiscard]] std::vector<std::vector<double>> correlation_root(const std::vector<OpenParameter>& parameters,
                                                                const DeviceProfile& profile);

}  // namespace hdpsim
