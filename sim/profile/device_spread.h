#pragma once

#include <cstdint>

#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The expected largest of `count` independent standard normal values, to 1e-6. 0 for one value. Constant time.
[[nodiscard]] double expected_largest_normal(std::int64_t count);

/// How many times longer kernels take on the slowest of `devices` devices than on the mean one, where the times of
/// products and attention are normal with this coefficient of variation: 1 + cv x expected_largest_normal(). Devices
/// differ by the clock that they hold under their power limit, and the memory has a clock of its own: kernels bound by
/// memory take the same on all (what Kurzynski et al. 2025, arXiv 2511.09861, and Sinha et al., SC 2022, arXiv
/// 2208.11035, find of products and of memory).
[[nodiscard]] FamilyFactors factors_of_slowest(double cv, std::int64_t devices);

}  // namespace hdpsim
