#pragma once

#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Adds to every link of a route its share of a message.
void add_route_bytes(const Route& route, Bytes bytes, LinkTraffic& links);

/// Adds to every link of a ring's hops the share `share` of the bytes that the program sends over it. `links` is
/// by LinkId.
void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share, LinkTraffic& links);

/// The share of its bytes that a program has sent after all blocks before `block` and `iterations` iterations of it. 1
/// if the program sends nothing.
[[nodiscard]] double share_sent(const MicroBatchProgram& program, std::size_t block, std::int64_t iterations);

}  // namespace hdpsim
