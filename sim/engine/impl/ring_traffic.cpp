#include "sim/engine/impl/ring_traffic.h"

#include <algorithm>

namespace hdpsim {
namespace {

// What one shard of one rank sends in the whole micro-batch.
Bytes bytes_of_shard(const MicroBatchProgram& program) {
  Bytes sum;
  for (const Block& block : program.blocks) {
    for (const Instruction& instruction : block.body) {
      if (instruction.opcode != Opcode::exchange) continue;
      const std::int64_t skipped = std::int64_t{instruction.first_iteration} + instruction.last_skipped;
      const std::int64_t active = std::max<std::int64_t>(block.iterations - skipped, 0);
      sum += program.bytes[instruction.work] * (active * instruction.repeats);
    }
  }
  return sum;
}

}  // namespace

void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share,
                      std::vector<Bytes>& link_bytes) {
  if (hops.empty()) return;
  const Bytes whole = bytes_of_shard(program);
  const Bytes bytes = share == 1 ? whole : whole.scaled(share);
  for (const Hop& hop : hops) {
    for (const Route& route : hop.routes) {
      for (const LinkId link : route.binding_links()) link_bytes[link.index()] += bytes;
    }
  }
}

}  // namespace hdpsim
