#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "calib/fit/samples.h"
#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim::testing {

/// A GPU with round numbers and 100 multiprocessors.
inline calib::Circumstances round_circumstances(std::int64_t multiprocessors = 100) {
  calib::Circumstances device;
  device.device = "ROUND";
  device.device_name = "a device with round numbers";
  device.multiprocessors = multiprocessors;
  device.memory_bytes = 80'000'000'000;
  device.peak_flops = 1e15;
  device.memory_bandwidth = 4e12;
  device.peak_source = "invented";
  return device;
}

/// What a law says, with seeded relative noise.
class Measured {
 public:
  explicit Measured(double noise, std::uint64_t seed = 1) : noise_(noise), random_(seed, "measured") {}

  calib::Timing operator()(double seconds) {
    const double median = seconds * std::exp(noise_ * random_.normal());
    return {median, 0.98 * median, 1.02 * median, 0.01, 20};
  }

 private:
  double noise_;
  RandomStream random_;
};

/// E|x| of a normal variable of deviation 1: what a mean relative error is to the noise.
inline constexpr double mean_of_normal = 0.8;

}  // namespace hdpsim::testing
