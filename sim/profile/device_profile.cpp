#include "sim/profile/device_profile.h"

namespace hdpsim {
namespace {

double ratio(Bandwidth achieved, Bandwidth line) {
  return static_cast<double>(achieved.bytes_per_second()) / static_cast<double>(line.bytes_per_second());
}

}  // namespace

double SendRecvRate::efficiency() const {
  return ratio(bandwidth, line_rate);
}

double CollectiveRate::efficiency() const {
  return ratio(bandwidth, line_rate);
}

Flops sample_work(const AttentionCurve& curve, const AttentionSample& sample) {
  const auto queries = static_cast<double>(sample.queries);
  const double area = curve.causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(sample.keys);
  const auto width = static_cast<double>(curve.heads * curve.head_dim * sample.count);
  const Flops forward(4 * width * area);
  return curve.backward ? 2.5 * forward : forward;
}

Flops sample_work(const GemmShapeSample& sample) {
  return Flops(2.0 * static_cast<double>(sample.m) * static_cast<double>(sample.n) * static_cast<double>(sample.k));
}

}  // namespace hdpsim
