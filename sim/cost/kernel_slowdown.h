#pragma once

#include <optional>

#include "sim/cost/cost_model.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// How many times longer kernels take while a message of their device is under way: the kernels that move messages hold
/// multiprocessors and memory bandwidth.
struct KernelSlowdown {
  double attention = 1;  ///< At least 1, as the next two.
  double product = 1;
  double memory_bound = 1;
  Evidence evidence = Evidence::formula;  ///< What the time that is lost rests on.
};

/// What a kernel that takes `alone` loses beside messages that are under way for `messages` from its start on. Beside
/// them it makes 1 / factor of its progress, so that of min(messages, factor x alone) all but that part is lost.
[[nodiscard]] Duration lost_beside(Duration alone, Duration messages, double factor);

/// The factor that the profile states for all kernels; else, kernel by kernel, what was measured beside messages moved
/// by the fewest thread blocks (a library takes few for a peer over the network; more slow more), where noise below 1
/// counts as 1. Nothing if the profile has neither.
[[nodiscard]] std::optional<KernelSlowdown> kernel_slowdown(const DeviceProfile& profile);

}  // namespace hdpsim
