#pragma once

#include <optional>
#include <string>

#include "sim/replay/replay.h"

namespace hdpsim {

// Sentences that the table and the page share.

/// The plan against which speed-ups are stated: "static", "hdp-balance {offload: auto}".
[[nodiscard]] const std::string& baseline_of(const ReplayResult& result);
/// The speed-up of a plan over the best static mesh; empty where there is none.
[[nodiscard]] std::optional<double> over_best_static(const ReplayResult& result, std::size_t plan);
/// What that mesh is, and how much of the baseline's time it takes; empty where there is none.
[[nodiscard]] std::string best_static_sentence(const ReplayResult& result);
/// The number and lengths of sequences, and how far lengths drift from window to window.
[[nodiscard]] std::string lengths_sentence(const ReplayResult& result);
/// How often a plan loses its lead over the baseline.
[[nodiscard]] std::string lead_sentence(const ReplayResult& result, std::size_t plan);
/// One stretch of steps in which a plan loses its lead.
[[nodiscard]] std::string stretch_sentence(const ReplayResult& result, const Stretch& stretch);
/// The sentence about one of the slowest steps.
[[nodiscard]] std::string step_sentence(const ReplayResult& result, const StepCause& cause);
/// By how much a plan exceeds the memory, and in how many steps; empty if it fits in all. Its figures then describe
/// steps that cannot run.
[[nodiscard]] std::string unfit_text(const ReplayResult& result, std::size_t plan);
/// In how many steps the memory of a plan is at risk (MemoryFit::at_risk), and by how much; empty if it is in none.
[[nodiscard]] std::string risk_text(const ReplayResult& result, std::size_t plan);
/// The plan with the shortest mean step, those that fit in all steps before all others.
[[nodiscard]] std::size_t best_plan(const ReplayResult& result);
/// The gain if the fastest plan ran every step.
[[nodiscard]] std::string best_sentence(const ReplayResult& result);
/// The steps of a window: "steps 10 to 19".
[[nodiscard]] std::string steps_text(const WindowRow& window);

}  // namespace hdpsim
