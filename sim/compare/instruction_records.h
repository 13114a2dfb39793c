#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"

namespace hdpsim {

/// The instructions of one timeline, and the name of its file for messages.
struct NamedInstructions {
  const std::string& file;
  const std::vector<InstructionRecord>& records;  ///< Sorted by sort_by_id().
};

/// Sorts by worker, then by pass and place in it. Two timelines of one plan then have the same order.
void sort_by_id(std::vector<InstructionRecord>& records);

/// InputError, with all differences, unless `measured` has exactly the instructions of `predicted`.
void require_same_instructions(const NamedInstructions& predicted, const NamedInstructions& measured);

/// Families of instructions: one per opcode and direction (none, forward, backward).
inline constexpr std::size_t instruction_families = 3 * opcode_count;

/// Opcode and direction: "attention forward". "overhead" has no direction.
[[nodiscard]] std::string instruction_family_name(std::size_t family);

/// Calls `visit` with every record and its family. The records of a pass follow one another, in the order of blocks.
void for_each_family(const std::vector<InstructionRecord>& records,
                     const std::function<void(const InstructionRecord& record, std::size_t family)>& visit);

/// The sends and receives of one worker.
struct ExchangeOverlap {
  double exchange_s = 0;  ///< Time in which at least one was under way.
  double hidden_s = 0;    ///< The part of it in which the worker's compute stream was busy.
};
[[nodiscard]] ExchangeOverlap exchange_overlap(std::span<const InstructionRecord> records);

}  // namespace hdpsim
