#pragma once

#include <memory>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/repeat.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The speed of a device relative to the time when its profile was measured: a few of the kernels that the profile has
/// samples of are timed again, as calibrations time them. Clocks, heat and the neighbours on a shared machine change
/// between a calibration and a training; this tells them from errors of a prediction.
class PaceMeter {
 public:
  /// Takes samples that last about two milliseconds: some of every attention kernel of the profile, of matrix products
  /// and of every memory-bound kernel. Their tensors stay on the device. InputError if the profile has none.
  PaceMeter(std::unique_ptr<Device> device, const DeviceProfile& profile);

  /// How many times longer than in its samples each family takes now: the median over its kernels of the median of
  /// three runs. 1 for families without such samples in the profile. Takes a fraction of a second.
  [[nodiscard]] FamilyFactors read();

 private:
  struct Yardstick {
    CostFamily family;
    Subject subject;
    double then_s;
    Repeatable work;
  };
  void take(CostFamily family, Subject subject, Duration then);

  std::unique_ptr<Device> device_;
  DeviceSpeed speed_;
  std::vector<Yardstick> yardsticks_;
};

}  // namespace hdpsim::calib
