#pragma once

#include <string>

#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

struct ReportOptions {
  int width = 100;    ///< Columns of the terminal.
  bool plots = true;  ///< Whether to draw bars of the relative error by sample next to the tables.
};

/// The results of a calibration as text for a terminal: a table per family with form, coefficients, range, in-sample
/// and held-out errors and the noise floor, then plots of the fit against the samples.
[[nodiscard]] std::string fit_report(const DeviceProfile& profile, const ReportOptions& options = {});

/// A line per family: samples, mean and greatest held-out error, noise floor. A calibration prints it at its end.
[[nodiscard]] std::string fit_summary(const DeviceProfile& profile);

}  // namespace hdpsim::calib
