#include "sim/base/units.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"

namespace hdpsim {
namespace {

std::int64_t rounded(double value) {
  HDPSIM_CHECK(std::abs(value) < 9.2e18, "{} does not fit 64 bits", value);
  return std::llround(value);
}

// Sizes and rates that are each within their limits may still make a time that no clock holds.
[[noreturn]] void refuse_time(const std::string& what) {
  throw InputError(fmt::format("{} takes longer than 106 days, which is as much as can be simulated", what),
                   "are the sizes and the rates those that were meant?");
}

}  // namespace

Duration Duration::seconds(double seconds) {
  constexpr double most_s = 9.2e6;
  if (std::abs(seconds) >= most_s) refuse_time(fmt::format("something of {:g} s", seconds));
  return Duration(rounded(seconds * 1e12));
}

Duration Duration::scaled(double factor) const {
  return Duration(rounded(static_cast<double>(ps_) * factor));
}

Bytes Bytes::scaled(double factor) const {
  return Bytes(rounded(static_cast<double>(count_) * factor));
}

Bandwidth Bandwidth::scaled(double factor) const {
  return Bandwidth(rounded(static_cast<double>(rate_) * factor));
}

Duration operator/(Bytes bytes, Bandwidth bandwidth) {
  const Int128 rate = bandwidth.bytes_per_second();
  HDPSIM_CHECK(rate > 0, "{} bytes over a bandwidth of {} B/s", bytes.count(), bandwidth.bytes_per_second());
  constexpr Int128 picoseconds_per_second = 1'000'000'000'000;
  const Int128 product = Int128{bytes.count()} * picoseconds_per_second;
  const Int128 ps = product / rate + (product % rate > 0 ? 1 : 0);
  if (ps < INT64_MIN || ps > INT64_MAX) {
    refuse_time(fmt::format("sending {} bytes at {} B/s", bytes.count(), bandwidth.bytes_per_second()));
  }
  return Duration::picoseconds(static_cast<std::int64_t>(ps));
}

Duration operator/(Flops work, FlopRate rate) {
  HDPSIM_CHECK(rate.per_second() > 0, "{} FLOP at {} FLOP/s", work.count(), rate.per_second());
  return Duration::seconds(work.count() / rate.per_second());
}

}  // namespace hdpsim
