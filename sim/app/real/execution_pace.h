#pragma once

#include <vector>

#include "calib/measure/pace.h"
#include "sim/app/real/execution_work.h"

namespace hdpsim::app {

/// The speed of a training device's kernels while it trains, relative to the time when its profile was measured.
class ExecutionPace {
 public:
  /// InputError if the profile was not measured; kernels::DeviceError without a device.
  ExecutionPace(const DeviceProfile& profile, DeviceKind kind);

  /// Takes the reading before the first run, in several rounds, and says by them what became of each family since the
  /// profile was measured. Takes about a second.
  [[nodiscard]] std::vector<calib::FamilyDrift> begin();
  /// Takes a reading. Call it after each run, while nothing else computes.
  void read();
  /// Mean of the readings before and after the last run; requires two readings.
  [[nodiscard]] FamilyFactors of_last_run() const;

 private:
  calib::PaceMeter meter_;
  std::vector<NoiseFloor> noise_;  ///< Of the profile.
  FamilyFactors before_, after_;
};

}  // namespace hdpsim::app
