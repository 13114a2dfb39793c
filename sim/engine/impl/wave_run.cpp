#include "sim/engine/impl/wave_run.h"

#include <vector>

namespace hdpsim {
namespace {

bool is_exchange(const Instruction& instruction, const MicroBatchProgram& program) {
  return instruction.opcode == Opcode::collective &&
         program.collectives[instruction.work].kind == CollectiveKind::all_to_all;
}

// The indices of a block's first and last all-to-all.
std::optional<BodyRange> exchanges(const MicroBatchProgram& program, std::size_t block) {
  std::optional<BodyRange> found;
  const std::vector<Instruction>& body = program.blocks[block].body;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const bool is_one = is_exchange(body[i], program);
    if (is_one && !found) found = BodyRange{i, i};
    if (is_one) found->last = i;
  }
  return found;
}

// The time that a device of nominal speed computes between the all-to-alls of a block. They come in pairs: the first
// sends tokens to their experts, the second sends the results back.
Duration between_exchanges(const PricedProgram& priced, std::size_t block) {
  const Block& loop = priced.program.blocks[block];
  Duration sum;
  bool inside = false;
  for (std::size_t i = 0; i < loop.body.size(); ++i) {
    const Instruction& instruction = loop.body[i];
    if (is_exchange(instruction, priced.program)) inside = !inside;
    if (inside && instruction.opcode == Opcode::dense) sum += priced.time(block, i, 1);
  }
  return sum * loop.iterations;
}

}  // namespace

bool has_all_to_all(const MicroBatchProgram& program, std::size_t block) {
  return exchanges(program, block).has_value();
}

std::optional<Margins> margins(const PricedProgram& priced, double speed, const TransferTime& transfer) {
  const std::vector<Block>& blocks = priced.program.blocks;
  const auto whole = [&](std::size_t block) {
    return loop_time(priced, block, {0, blocks[block].body.size()}, speed, transfer).total;
  };
  Margins margins;
  std::size_t first = 0;
  for (; first < blocks.size(); ++first) {
    if (const auto found = exchanges(priced.program, first)) {
      margins.lead += pass_time(priced, first, {0, found->first}, speed, transfer).total;
      break;
    }
    margins.lead += whole(first);
  }
  if (first == blocks.size()) return std::nullopt;
  for (std::size_t block = 0; block < blocks.size(); ++block) margins.experts += between_exchanges(priced, block);
  for (std::size_t block = blocks.size(); block-- > first;) {
    if (const auto found = exchanges(priced.program, block)) {
      margins.tail += pass_time(priced, block, {found->last + 1, blocks[block].body.size()}, speed, transfer).total;
      break;
    }
    margins.tail += whole(block);
  }
  return margins;
}

}  // namespace hdpsim
