#pragma once

#include <optional>

#include "sim/cost/cost_model.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// How many times longer kernels take while they overlap with a message of their device: the kernels that move messages
/// occupy multiprocessors and memory bandwidth.
struct KernelSlowdown {
  double attention = 1;  ///< At least 1, as the next two.
  double product = 1;
  double memory_bound = 1;
  Evidence evidence = Evidence::formula;  ///< Evidence of the time that is lost.
};

/// The time that a kernel of duration `alone` loses to messages that are under way for `messages` from its start on.
/// While it overlaps with them it makes 1 / factor of its progress, so that it loses all of min(messages, factor x
/// alone) except that part.
[[nodiscard]] Duration lost_to_overlap(Duration alone, Duration messages, double factor);

/// The factor that the profile states for all kernels; otherwise, kernel by kernel, the slowdown that was measured
/// under messages moved by the fewest thread blocks (a library uses few for a peer over the network; more cause a
/// larger slowdown), where noise below 1 counts as 1. Empty if the profile has neither.
[[nodiscard]] std::optional<KernelSlowdown> kernel_slowdown(const DeviceProfile& profile);

}  // namespace hdpsim
