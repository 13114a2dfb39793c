#pragma once

#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Adds to every link on the way of a ring's hops `share` of what the micro-batch sends over it. `link_bytes` is by
/// LinkId.
void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share,
                      std::vector<Bytes>& link_bytes);

}  // namespace hdpsim
