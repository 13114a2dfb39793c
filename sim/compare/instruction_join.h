#pragma once

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

}  // namespace hdpsim
