#include "sim/engine/impl/ring_traffic.h"

#include <algorithm>

namespace hdpsim {
namespace {

// The bytes that one shard of one rank sends in a block.
Bytes bytes_of_block(const MicroBatchProgram& program, const Block& block) {
  Bytes sum;
  for (const Instruction& instruction : block.body) {
    if (instruction.opcode != Opcode::exchange) continue;
    const std::int64_t skipped = std::int64_t{instruction.first_iteration} + instruction.last_skipped;
    const std::int64_t active = std::max<std::int64_t>(block.iterations - skipped, 0);
    sum += program.bytes[instruction.work] * active;
  }
  return sum;
}

// The same for the whole program.
Bytes bytes_of_shard(const MicroBatchProgram& program) {
  Bytes sum;
  for (const Block& block : program.blocks) sum += bytes_of_block(program, block);
  return sum;
}

}  // namespace

void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share,
                      std::vector<Bytes>& link_bytes) {
  if (hops.empty()) return;
  const Bytes whole = bytes_of_shard(program);
  const Bytes bytes = share == 1 ? whole : whole.scaled(share);
  for (const Hop& hop : hops) {
    for (const HopRoute& part : hop.routes) {
      for (const LinkId link : part.route.binding_links()) link_bytes[link.index()] += part.part(bytes);
    }
  }
}

double share_sent(const MicroBatchProgram& program, std::size_t block, std::int64_t iterations) {
  const Bytes all = bytes_of_shard(program);
  if (all == Bytes{}) return 1;
  double sent = 0;
  for (std::size_t b = 0; b <= block; ++b) {
    const Block& each = program.blocks[b];
    const double part = b < block ? 1 : static_cast<double>(iterations) / static_cast<double>(each.iterations);
    sent += part * static_cast<double>(bytes_of_block(program, each).count());
  }
  return sent / static_cast<double>(all.count());
}

}  // namespace hdpsim
