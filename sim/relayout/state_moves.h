#pragma once

#include <vector>

#include "sim/network/traffic.h"
#include "sim/relayout/relayout.h"

namespace hdpsim {

/// What devices send each other so that a job goes on in another layout: every device receives the part of each of its
/// layers that it did not have, a layer's states being `layer_bytes` on the devices of a group together. It comes from
/// a device that had it: one of its node, otherwise the one that has sent least so far. `layout` has layers in their
/// order, a group cuts each evenly in the order of its devices. O(moved parts x pipelines + devices x layers).
[[nodiscard]] std::vector<Message> state_moves(const Relayout& from, const Relayout& to, const RelayoutJob& job,
                                               double layer_bytes);

}  // namespace hdpsim
