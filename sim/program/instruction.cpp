#include "sim/program/instruction.h"

namespace hdpsim {

std::string_view stream_name(Stream stream) {
  constexpr std::array<std::string_view, stream_count> names = {"compute", "comm", "d2h", "h2d", "pool"};
  return names.at(static_cast<std::size_t>(stream));
}

std::string_view opcode_name(Opcode opcode) {
  constexpr std::array<std::string_view, opcode_count> names = {
      "dense",    "attention",   "merge", "exchange", "collective", "offload", "prefetch",
      "overhead", "expert_wait", "issue", "gather",   "reduce",     "share",   "rank_wait"};
  return names.at(static_cast<std::size_t>(opcode));
}

Bytes MicroBatchProgram::sent_around_ring(const Block& block) const {
  Bytes sum;
  for (const Instruction& instruction : block.body) {
    if (instruction.opcode == Opcode::exchange) sum += bytes[instruction.work] * instruction.runs(block.iterations);
  }
  return sum;
}

Bytes MicroBatchProgram::sent_around_ring() const {
  Bytes sum;
  for (const Block& block : blocks) sum += sent_around_ring(block);
  return sum;
}

}  // namespace hdpsim
