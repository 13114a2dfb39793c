#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hdpsim {

/// What an operator takes on so many devices.
struct ScalingPoint {
  std::int64_t devices = 1;
  double seconds = 0;
};

/// The time of an operator over the devices that share it: a few numbers of devices are possible, and between them the
/// speed (operators a second) is linear, as if the devices shared their time between two of them. Points that are no
/// faster than one with fewer devices are left out.
class ScalingCurve {
 public:
  /// At least one point; positive devices, in rising order, and positive times (checked).
  explicit ScalingCurve(const std::vector<ScalingPoint>& measured);

  /// The curve through the points on the upper concave envelope of the speed, from no device at speed 0 on. There the
  /// gain of a device falls, so that no schedule is faster than its mean number of devices is on this curve (Jensen's
  /// inequality).
  [[nodiscard]] ScalingCurve envelope() const;

  /// By rising devices and falling time.
  [[nodiscard]] const std::vector<ScalingPoint>& points() const { return points_; }
  /// Operators a second on any number of devices >= 0: that of the last point beyond it.
  [[nodiscard]] double speed(double devices) const;
  /// The fewest devices with this speed, which is at most most_speed() (checked).
  [[nodiscard]] double devices_for(double speed) const;
  [[nodiscard]] double most_speed() const { return 1 / points_.back().seconds; }
  /// The first point with at least so many devices; the last one, if none has.
  [[nodiscard]] std::size_t point_from(double devices) const;
  /// The time on this number of devices, which is that of a point (checked).
  [[nodiscard]] double seconds(std::int64_t devices) const;

 private:
  std::vector<ScalingPoint> points_;
};

}  // namespace hdpsim
