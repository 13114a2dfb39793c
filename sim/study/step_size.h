#pragma once

#include <cstdint>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

struct Study;

/// The most sequences of one step that are simulated; a million GPUs with mixed lengths have a quarter of it.
inline constexpr std::int64_t most_sequences_of_step = std::int64_t{1} << 26;

/// Estimates, before any step is made, how many sequences a step has. Reports more than most_sequences_of_step at the
/// key that decides; MachineError, with the same place, where their plans need more memory than this machine has.
void check_step_size(const BatchOptions& options, const BatchSource& batches, Diagnostics& diagnostics);

/// One line that says how long the study's largest step may take, for users who wait for its first figure. Empty where
/// that is below some seconds, that is up to a million sequences.
[[nodiscard]] std::string large_step_note(const Study& study);

}  // namespace hdpsim
