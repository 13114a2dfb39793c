#pragma once

#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Adds to every link on the way of a ring's hops `share` of what the micro-batch sends over it. `link_bytes` is by
/// LinkId.
void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share,
                      std::vector<Bytes>& link_bytes);

/// The share of its bytes that a micro-batch has sent when it has `iterations` of a block behind it, and all blocks
/// before. 1 if it sends nothing.
[[nodiscard]] double share_sent(const MicroBatchProgram& program, std::size_t block, std::int64_t iterations);

}  // namespace hdpsim
