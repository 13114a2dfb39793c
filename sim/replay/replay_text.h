#pragma once

#include <string>

#include "sim/replay/replay.h"

namespace hdpsim {

// Sentences that the table and the page have in common.

/// "static", "hdp-balance {offload: auto}": against which plan speed-ups are stated.
[[nodiscard]] const std::string& baseline_of(const ReplayResult& result);
/// How many sequences of which lengths, and how far they drift from window to window.
[[nodiscard]] std::string lengths_sentence(const ReplayResult& result);
/// Where a plan loses its lead over the baseline, as a whole.
[[nodiscard]] std::string lead_sentence(const ReplayResult& result, std::size_t plan);
/// One stretch of steps in which it does.
[[nodiscard]] std::string stretch_sentence(const ReplayResult& result, const Stretch& stretch);
/// One of the slowest steps.
[[nodiscard]] std::string step_sentence(const ReplayResult& result, const StepCause& cause);
/// By how much a plan exceeds the memory, and in how many steps; empty if it fits in all. Its figures are then of what
/// cannot run.
[[nodiscard]] std::string unfit_text(const ReplayResult& result, std::size_t plan);
/// What would be won by taking the fastest plan of every step.
[[nodiscard]] std::string best_sentence(const ReplayResult& result);
/// "steps 10 to 19".
[[nodiscard]] std::string steps_text(const WindowRow& window);

}  // namespace hdpsim
