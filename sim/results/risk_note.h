#pragma once

#include <string>
#include <vector>

#include "sim/analysis/metrics.h"

namespace hdpsim {

/// Runs whose memory is at risk (MemoryFit::at_risk), a line a plan: how many, the figures of the fullest, and what
/// would help. Empty without such a run.
[[nodiscard]] std::string risk_lines(const std::vector<Run>& runs);

/// How a run that does not fit a device may fit it after all, by ways to train that are not modelled: a loss in pieces
/// (no logits of all tokens), states in bf16 (no fp32 weights, moments and gradients of half the bytes). Empty if none
/// of them would free enough.
[[nodiscard]] std::string not_modelled_savings(const Run& run);

}  // namespace hdpsim
