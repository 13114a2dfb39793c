#pragma once

#include <optional>
#include <vector>

#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// The network parameters of the simulator from the messages over one kind of link: send/recv as latency and bandwidth,
/// a collective as latency, steps of a ring and bus bandwidth, over all numbers of ranks at once. `line_rate` is that
/// of the link; if empty, the fastest that any message reached. Empty without messages.
[[nodiscard]] std::optional<LinkProfile> link_profile(const std::vector<MessageSample>& samples, LinkKind link,
                                                      std::optional<Bandwidth> line_rate);

}  // namespace hdpsim::calib
