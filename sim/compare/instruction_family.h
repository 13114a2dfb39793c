#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"

namespace hdpsim {

/// Families of instructions: one per opcode and direction (none, forward, backward).
inline constexpr std::size_t instruction_families = 3 * opcode_count;

/// Opcode and direction: "attention forward". "overhead" has no direction.
[[nodiscard]] std::string instruction_family_name(std::size_t family);

/// Calls `visit` with every record and its family. The records of a pass follow one another, in the order of blocks.
void for_each_family(const std::vector<InstructionRecord>& records,
                     const std::function<void(const InstructionRecord& record, std::size_t family)>& visit);

}  // namespace hdpsim
