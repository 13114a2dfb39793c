#include "calib/fit/impl/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/quantity_text.h"

namespace hdpsim::calib {

Bandwidth bandwidth_of(double seconds_per_byte) {
  const auto [slowest, fastest] = limits::bandwidth;
  const auto least_cost = 1 / static_cast<double>(fastest.bytes_per_second());
  const auto rate = Bandwidth::bytes_per_second(std::llround(1 / std::max(seconds_per_byte, least_cost)));
  return std::clamp(rate, slowest, fastest);
}

FlopRate rate_of(double flops_per_second) {
  constexpr double giga = 1e9;
  const auto rate = parse_flop_rate(fmt::format("{:.7g} GFLOP/s", flops_per_second / giga)).value;
  HDPSIM_CHECK(rate.has_value(), "a rate of {} FLOP/s", flops_per_second);
  return *rate;
}

std::optional<Spread> spread_of(const Timing& timing) {
  if (timing.runs < 1 || !(timing.p10_s > 0)) return std::nullopt;
  return Spread{Duration::seconds(timing.p10_s), Duration::seconds(timing.p90_s), timing.runs};
}

}  // namespace hdpsim::calib
