#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace hdpsim {

/// An exact sum of durations that a Duration cannot hold: the ranks of a large cluster together work for its limit of
/// 106 days within minutes.
class DurationSum {
 public:
  constexpr DurationSum() = default;
  [[nodiscard]] static constexpr DurationSum picoseconds(Int128 count) { return DurationSum(count); }

  [[nodiscard]] constexpr Int128 picoseconds() const { return ps_; }
  /// The sum in seconds, rounded to the nearest double.
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps_) / 1e12; }

  constexpr DurationSum& operator+=(Duration duration) { return add(duration, 1); }
  /// Adds the same duration `times` times.
  constexpr DurationSum& add(Duration duration, std::int64_t times) {
    ps_ += Int128{duration.picoseconds()} * times;
    return *this;
  }
  /// The sum as a Duration. QuantityOverflow where a Duration cannot hold it.
  [[nodiscard]] constexpr Duration duration() const {
    if (ps_ > INT64_MAX || ps_ < INT64_MIN) detail::time_overflows();
    return Duration::picoseconds(static_cast<std::int64_t>(ps_));
  }
  friend constexpr DurationSum operator-(DurationSum a, DurationSum b) { return DurationSum(a.ps_ - b.ps_); }
  friend constexpr auto operator<=>(DurationSum, DurationSum) = default;

 private:
  constexpr explicit DurationSum(Int128 ps) : ps_(ps) {}
  Int128 ps_ = 0;
};

}  // namespace hdpsim
