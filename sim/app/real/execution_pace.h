#pragma once

#include "calib/measure/pace.h"
#include "sim/app/real/execution_work.h"

namespace hdpsim::app {

/// The speed of a training device's kernels while it trains, relative to the time when its profile was measured.
class ExecutionPace {
 public:
  /// InputError if the profile was not measured; kernels::DeviceError without a device.
  ExecutionPace(const DeviceProfile& profile, DeviceKind kind);

  /// Takes a reading. Call it before the first run and after each one, while nothing else computes.
  void read();
  /// Mean of the readings before and after the last run; requires two readings.
  [[nodiscard]] FamilyFactors of_last_run() const;

 private:
  calib::PaceMeter meter_;
  FamilyFactors before_, after_;
};

}  // namespace hdpsim::app
