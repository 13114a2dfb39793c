#pragma once

#include <memory>
#include <string>

#include "sim/cost/cost_model.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"

namespace hdpsim::testing {

inline DeviceProfile shipped_profile(const std::string& name) {
  Diagnostics diagnostics;
  const auto profile = load_profile(name, std::string(HDPSIM_SOURCE_DIR) + "/calib/profiles", {}, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(profile.has_value());
  return *profile;
}

/// One launch of `count` equal blocks with 16 heads of 128.
inline Attention launch_of(AttentionBlock block, Direction direction = Direction::forward) {
  return {{block}, 16, 4, 128, direction};
}

/// A device with round numbers: 100 processors, 100 TFLOP/s, 1 TB/s, launches of 10 us, no samples.
inline DeviceProfile round_device() {
  DeviceProfile profile;
  profile.provenance.label = ProfileLabel::measured;
  profile.datasheet.peak = 100_TFLOPs;
  profile.datasheet.memory_bandwidth = 1000_GBps;
  profile.datasheet.memory = Bytes(80'000'000'000);
  profile.datasheet.multiprocessors = 100;
  profile.overheads.kernel_launch.time = 10_us;
  return profile;
}

/// A full, forward kernel of 128 x 128 tiles and 16 heads of 128 with samples of `rate` pairs a second at 1,024 and of
/// twice that at 4,096. Launch 10 us.
inline AttentionCurve doubling_curve() {
  AttentionCurve curve;
  curve.head_dim = 128;
  curve.heads = 16;
  curve.tile_queries = 128;
  curve.tile_keys = 128;
  curve.launch = 10_us;
  const auto sample = [](std::int64_t length, std::int64_t count, double pairs_per_second) {
    const double pairs = 16.0 * static_cast<double>(length * length * count);
    return AttentionSample{length, length, count, 10_us + Duration::seconds(pairs / pairs_per_second), {}};
  };
  curve.samples = {sample(1024, 16, 1e10), sample(4096, 1, 2e10)};
  return curve;
}

}  // namespace hdpsim::testing
