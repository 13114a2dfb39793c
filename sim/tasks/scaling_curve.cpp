#include "sim/tasks/scaling_curve.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

double speed_of(const ScalingPoint& point) {
  return 1 / point.seconds;
}

// The gain of speed by a device between two points.
double gain(const ScalingPoint& from, const ScalingPoint& to) {
  return (speed_of(to) - speed_of(from)) / static_cast<double>(to.devices - from.devices);
}

}  // namespace

ScalingCurve::ScalingCurve(const std::vector<ScalingPoint>& measured) {
  HDPSIM_CHECK(!measured.empty(), "a curve without a point");
  for (const ScalingPoint& next : measured) {
    HDPSIM_CHECK(next.devices > 0 && next.seconds > 0, "{} devices take {} s", next.devices, next.seconds);
    if (points_.empty() || next.seconds < points_.back().seconds) points_.push_back(next);
  }
}

ScalingCurve ScalingCurve::envelope() const {
  std::vector<ScalingPoint> kept;
  const auto last_gain = [&kept] {
    if (kept.size() > 1) return gain(kept[kept.size() - 2], kept.back());
    return speed_of(kept.back()) / static_cast<double>(kept.back().devices);
  };
  for (const ScalingPoint& next : points_) {
    while (!kept.empty() && gain(kept.back(), next) >= last_gain()) kept.pop_back();
    kept.push_back(next);
  }
  return ScalingCurve(kept);
}

std::size_t ScalingCurve::point_from(double devices) const {
  const auto found = std::lower_bound(
      points_.begin(), points_.end(), devices,
      [](const ScalingPoint& point, double wanted) { return static_cast<double>(point.devices) < wanted; });
  return static_cast<std::size_t>(std::min(found, std::prev(points_.end())) - points_.begin());
}

double ScalingCurve::speed(double devices) const {
  const std::size_t upper = point_from(devices);
  const auto most = static_cast<double>(points_[upper].devices);
  if (devices >= most) return speed_of(points_[upper]);
  const double fewest = upper == 0 ? 0 : static_cast<double>(points_[upper - 1].devices);
  const double slowest = upper == 0 ? 0 : speed_of(points_[upper - 1]);
  return slowest + (speed_of(points_[upper]) - slowest) * (devices - fewest) / (most - fewest);
}

double ScalingCurve::devices_for(double speed) const {
  HDPSIM_CHECK(speed <= most_speed(), "a speed of {}, above {}", speed, most_speed());
  double fewest = 0;
  double slowest = 0;
  for (const ScalingPoint& point : points_) {
    const double fastest = speed_of(point);
    const auto most = static_cast<double>(point.devices);
    if (speed <= fastest) return fewest + (most - fewest) * (speed - slowest) / (fastest - slowest);
    fewest = most;
    slowest = fastest;
  }
  return fewest;
}

double ScalingCurve::seconds(std::int64_t devices) const {
  const ScalingPoint& point = points_[point_from(static_cast<double>(devices))];
  HDPSIM_CHECK(point.devices == devices, "{} devices are no point of the curve", devices);
  return point.seconds;
}

}  // namespace hdpsim
