#include "sim/cost/fitted_transfer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hdpsim {
namespace {

double seconds_a_byte(const ByteCost& cost) {
  return cost.bandwidth ? 1 / static_cast<double>(cost.bandwidth->bytes_per_second()) : 0;
}

double seconds_a_byte(const TransferCurve& curve, double bytes) {
  const auto above = std::find_if(curve.costs.begin(), curve.costs.end(),
                                  [&](const ByteCost& cost) { return static_cast<double>(cost.at.count()) >= bytes; });
  if (above == curve.costs.begin()) return seconds_a_byte(curve.costs.front());
  if (above == curve.costs.end()) return seconds_a_byte(curve.costs.back());
  const ByteCost& below = *(above - 1);
  const auto low = static_cast<double>(below.at.count());
  const auto high = static_cast<double>(above->at.count());
  return std::lerp(seconds_a_byte(below), seconds_a_byte(*above), std::log(bytes / low) / std::log(high / low));
}

double line_seconds(Duration latency, Bandwidth bandwidth, double bytes) {
  return latency.seconds() + bytes / static_cast<double>(bandwidth.bytes_per_second());
}

}  // namespace

double fitted_seconds(const TransferCurve& curve, double bytes) {
  return curve.latency.seconds() + bytes * seconds_a_byte(curve, bytes);
}

double fitted_seconds(const CopyFit& fit, double bytes) {
  return line_seconds(fit.latency, fit.bandwidth, bytes);
}

double fitted_seconds(const MessageFit& fit, double bytes) {
  if (fit.curve) return fitted_seconds(*fit.curve, bytes);
  double seconds = std::numeric_limits<double>::infinity();
  for (const MessageLine& line : fit.lines) {
    seconds = std::min(seconds, line_seconds(line.latency, line.bandwidth, bytes));
  }
  return seconds;
}

const MessageFit* message_fit(const ProfileFits& fits, LinkKind link, MessageKind kind, std::int64_t ranks) {
  const auto found = std::find_if(fits.messages.begin(), fits.messages.end(), [&](const MessageFit& fit) {
    return fit.link == link && fit.kind == kind && fit.ranks == ranks;
  });
  return found == fits.messages.end() ? nullptr : &*found;
}

}  // namespace hdpsim
