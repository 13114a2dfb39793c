#include "sim/engine/impl/wave_run.h"

#include <vector>

namespace hdpsim {
namespace {

// The time that a device of nominal speed computes between the all-to-alls of a block.
Duration between_exchanges(const PricedProgram& priced, std::size_t block) {
  const Block& loop = priced.program.blocks[block];
  Duration sum;
  for (const BodyRange& experts : loop.exchanged_experts) {
    for (std::size_t i = experts.first; i < experts.last; ++i) {
      if (loop.body[i].opcode == Opcode::dense) sum += priced.time(block, i, 1);
    }
  }
  return sum * loop.iterations;
}

}  // namespace

std::optional<Margins> margins(const PricedProgram& priced, double speed, const TransferTime& transfer) {
  const std::vector<Block>& blocks = priced.program.blocks;
  const auto whole = [&](std::size_t block) {
    return loop_time(priced, block, {0, blocks[block].body.size()}, speed, transfer).total;
  };
  Margins margins;
  std::size_t first = 0;
  for (; first < blocks.size(); ++first) {
    if (const auto& exchanged = blocks[first].exchanged_experts; !exchanged.empty()) {
      margins.lead += pass_time(priced, first, {0, exchanged.front().first}, speed, transfer).total;
      break;
    }
    margins.lead += whole(first);
  }
  if (first == blocks.size()) return std::nullopt;
  for (std::size_t block = 0; block < blocks.size(); ++block) margins.experts += between_exchanges(priced, block);
  for (std::size_t block = blocks.size(); block-- > first;) {
    if (const auto& exchanged = blocks[block].exchanged_experts; !exchanged.empty()) {
      const BodyRange behind{exchanged.back().last + 1, blocks[block].body.size()};
      margins.tail += pass_time(priced, block, behind, speed, transfer).total;
      break;
    }
    margins.tail += whole(block);
  }
  return margins;
}

}  // namespace hdpsim
