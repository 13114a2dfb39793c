#pragma once

#include <string>

#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

struct ReportOptions {
  int width = 100;    ///< Columns of the terminal.
  bool plots = true;  ///< Bars of the relative error by sample beside the tables.
};

/// What a calibration found, as text for a terminal: a table a family with form, coefficients, range, in-sample and
/// held-out errors beside the noise floor, then plots of the fit against the samples.
[[nodiscard]] std::string fit_report(const DeviceProfile& profile, const ReportOptions& options = {});

/// A line a family: samples, mean and greatest held-out error, noise floor. What a calibration prints at its end.
[[nodiscard]] std::string fit_summary(const DeviceProfile& profile);

}  // namespace hdpsim::calib
