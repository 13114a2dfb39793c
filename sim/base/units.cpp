#include "sim/base/units.h"

#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// The value rounded to the nearest integer, halves away from zero, as std::llround() does with a call into the C
// library. `overflows` throws beyond 64 bits. NaN is a bug.
std::int64_t rounded(double value, void (*overflows)()) {
  HDPSIM_CHECK(!std::isnan(value), "a quantity of {}", value);
  constexpr double most = 9.2e18;
  if (std::abs(value) >= most) overflows();
  const auto whole = static_cast<std::int64_t>(value);
  const double rest = value - static_cast<double>(whole);
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

}  // namespace

namespace detail {

void time_overflows() {
  throw QuantityOverflow("a time is longer than 106 days, which is as much as can be simulated");
}

void amount_overflows() {
  throw QuantityOverflow("an amount of data is more than 9.2e18 bytes, which is as much as can be counted");
}

void rate_overflows() {
  throw QuantityOverflow("a bandwidth is more than 9.2e18 B/s, which is as much as can be counted");
}

}  // namespace detail

Duration Duration::seconds(double seconds) {
  return Duration(rounded(seconds * 1e12, detail::time_overflows));
}

Duration Duration::scaled(double factor) const {
  return Duration(rounded(static_cast<double>(ps_) * factor, detail::time_overflows));
}

Bytes Bytes::scaled(double factor) const {
  return Bytes(rounded(static_cast<double>(count_) * factor, detail::amount_overflows));
}

Bandwidth Bandwidth::scaled(double factor) const {
  return Bandwidth(rounded(static_cast<double>(rate_) * factor, detail::rate_overflows));
}

Duration operator/(Bytes bytes, Bandwidth bandwidth) {
  const Int128 rate = bandwidth.bytes_per_second();
  HDPSIM_CHECK(rate > 0, "{} bytes over a bandwidth of {} B/s", bytes.count(), bandwidth.bytes_per_second());
  constexpr Int128 picoseconds_per_second = 1'000'000'000'000;
  const Int128 product = Int128{bytes.count()} * picoseconds_per_second;
  const Int128 ps = product / rate + (product % rate > 0 ? 1 : 0);
  if (ps < INT64_MIN || ps > INT64_MAX) detail::time_overflows();
  return Duration::picoseconds(static_cast<std::int64_t>(ps));
}

Duration operator/(Flops work, FlopRate rate) {
  HDPSIM_CHECK(rate.per_second() > 0, "{} FLOP at {} FLOP/s", work.count(), rate.per_second());
  return Duration::seconds(work.count() / rate.per_second());
}

}  // namespace hdpsim
