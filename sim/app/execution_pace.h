#pragma once

#include "calib/measure/pace.h"
#include "sim/app/execution_work.h"

namespace hdpsim::app {

/// How fast the kernels of a training's device are while it trains, beside when its profile was measured.
class ExecutionPace {
 public:
  /// InputError if the profile of the point was not measured; kernels::DeviceError without a device.
  ExecutionPace(const StudyPoint& point, DeviceKind kind);

  /// To be called before the first run and after each, while nothing else computes.
  void read();
  /// Mean of the readings before and after it; two readings have been taken.
  [[nodiscard]] FamilyFactors of_last_run() const;

 private:
  calib::PaceMeter meter_;
  FamilyFactors before_, after_;
};

}  // namespace hdpsim::app
