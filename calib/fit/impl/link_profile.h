#pragma once

#include <optional>
#include <vector>

#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// What the simulator's network takes from the messages over one kind of link: send/recv as latency and bandwidth, a
/// collective as latency, steps of a ring and bus bandwidth, over all numbers of ranks at once. `line_rate`: of the
/// link; where none is given, the fastest that any message achieved. Nothing without messages.
[[nodiscard]] std::optional<LinkProfile> link_profile(const std::vector<MessageSample>& samples, LinkKind link,
                                                      std::optional<Bandwidth> line_rate);

}  // namespace hdpsim::calib
