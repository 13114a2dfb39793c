#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calib/measure/device.h"
#include "calib/measure/drift.h"
#include "calib/measure/repeat.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// What of a profile is timed again: its kernels, or also the messages and copies that this device can time.
enum class PaceScope { kernels, everything };

/// The speed of a device relative to the time when its profile was measured: a few of the things that the profile has
/// samples of are timed again, as calibrations time them. Clocks, heat and the neighbours on a shared machine change
/// between a calibration and a training; this separates them from errors of a prediction.
class PaceMeter {
 public:
  /// Takes samples that last about two milliseconds: four kernels of each family, far apart in the profile. With
  /// PaceScope::everything one of every attention kernel and memory-bound kernel, of every message, by kind and ranks,
  /// and of every copy, and three matrix products. Their tensors stay on the device. InputError if the profile has
  /// none.
  PaceMeter(std::unique_ptr<Device> device, const DeviceProfile& profile, PaceScope scope = PaceScope::kernels);

  /// Times each of these samples again: the median of three runs over its time in the profile. Leaves out those for
  /// which the device is not as it was at the start (Device::is_as_found). Takes a fraction of a second.
  [[nodiscard]] std::vector<PaceRatio> ratios();

  /// How many times longer than in its samples each family takes now: the median over its ratios(). 1 for families
  /// without such samples in the profile.
  [[nodiscard]] FamilyFactors read();

  /// The name of the device by driver or processor.
  [[nodiscard]] const std::string& device_name() const { return circumstances_.device_name; }
  /// What the profile has samples of and this device cannot time, with PaceScope::everything: "all_reduce of 8 ranks".
  [[nodiscard]] const std::vector<std::string>& not_timed() const { return not_timed_; }

 private:
  struct Yardstick {
    CostFamily family;
    Subject subject;
    double then_s;
    Repeatable work;
    bool is_warm = false;  ///< It has run before.
  };
  void take(CostFamily family, Subject subject, Duration then);
  void take_kernels(const DeviceProfile& profile, PaceScope scope);
  void take_messages(const DeviceProfile& profile);
  void take_copies(const DeviceProfile& profile);

  std::unique_ptr<Device> device_;
  Circumstances circumstances_;
  DeviceSpeed speed_;
  std::vector<Yardstick> yardsticks_;
  std::vector<std::string> not_timed_;
};

/// The medians of these ratios by family; 1 for families without any.
[[nodiscard]] FamilyFactors factors_of(const std::vector<PaceRatio>& ratios);

}  // namespace hdpsim::calib
