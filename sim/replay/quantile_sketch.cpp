#include "sim/replay/quantile_sketch.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr std::int64_t buckets_per_octave = 512;

// The value is m 2^e with m in [0.5, 1).
std::int64_t bucket_of(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  const auto part = static_cast<std::int64_t>((2 * mantissa - 1) * static_cast<double>(buckets_per_octave));
  return std::int64_t{exponent} * buckets_per_octave + part;
}

double middle_of(std::int64_t bucket) {
  std::int64_t exponent = bucket / buckets_per_octave;
  std::int64_t part = bucket % buckets_per_octave;
  if (part < 0) {
    part += buckets_per_octave;
    --exponent;
  }
  const double mantissa = 0.5 + (static_cast<double>(part) + 0.5) / static_cast<double>(2 * buckets_per_octave);
  return std::ldexp(mantissa, static_cast<int>(exponent));
}

}  // namespace

void QuantileSketch::add(double value) {
  HDPSIM_CHECK(std::isfinite(value) && value > 0, "value = {}", value);
  ++counts_[bucket_of(value)];
  least_ = count_ == 0 ? value : std::min(least_, value);
  largest_ = count_ == 0 ? value : std::max(largest_, value);
  ++count_;
}

double QuantileSketch::quantile(double p) const {
  HDPSIM_CHECK(count_ > 0 && p >= 0 && p <= 1, "quantile {} of {} values", p, count_);
  const auto place = std::max<std::int64_t>(1, std::llround(std::ceil(p * static_cast<double>(count_))));
  if (place == 1) return least_;
  if (place >= count_) return largest_;
  std::int64_t before = 0;
  for (const auto& [bucket, count] : counts_) {
    before += count;
    if (before >= place) return std::clamp(middle_of(bucket), least_, largest_);
  }
  return largest_;
}

}  // namespace hdpsim
