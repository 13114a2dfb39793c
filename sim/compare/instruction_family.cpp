#include "sim/compare/instruction_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace hdpsim {
namespace {

constexpr std::array<const char*, 3> direction_suffixes = {"", " forward", " backward"};

// Backward runs the blocks of a whole micro-batch's forward in reverse, so that the later half of the blocks is
// backward.
bool is_forward(const InstructionRecord& record, std::uint32_t last_block) {
  return record.kind == PassKind::whole ? 2 * record.block <= last_block : record.kind == PassKind::forward;
}

// The overhead of a micro-batch, its first block, has no direction.
std::size_t family_of(const InstructionRecord& record, std::uint32_t last_block) {
  const auto opcode = static_cast<std::size_t>(record.opcode);
  if (record.opcode == Opcode::overhead) return opcode;
  return opcode + opcode_count * (is_forward(record, last_block) ? 1 : 2);
}

auto pass_key(const InstructionRecord& record) {
  return std::tuple(record.rank, record.micro_batch, record.chunk, record.kind);
}

}  // namespace

std::string instruction_family_name(std::size_t family) {
  return fmt::format("{}{}", opcode_name(static_cast<Opcode>(family % opcode_count)),
                     direction_suffixes[family / opcode_count]);
}

void for_each_family(const std::vector<InstructionRecord>& records,
                     const std::function<void(const InstructionRecord& record, std::size_t family)>& visit) {
  for (std::size_t begin = 0; begin < records.size();) {
    const auto is_of_another = [&](const auto& record) { return pass_key(record) != pass_key(records[begin]); };
    const auto first = records.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = static_cast<std::size_t>(std::find_if(first, records.end(), is_of_another) - records.begin());
    for (std::size_t i = begin; i < end; ++i) visit(records[i], family_of(records[i], records[end - 1].block));
    begin = end;
  }
}

}  // namespace hdpsim
