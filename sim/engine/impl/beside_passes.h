#pragma once

#include <span>

#include "sim/cost/kernel_slowdown.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Prices a pass that a schedule runs at the same time as `others`, layer by layer: its all-to-alls of experts travel
/// beside the kernels of the others, and their all-to-alls beside its kernels (DeepSeek-AI 2024, arXiv 2412.19437,
/// section 3.2.1). With K and X the times of kernels and all-to-alls of the one and k and x of the others, both
/// together take max(K + k, X + x, K + X, k + x): the pass keeps max(0, X - k) of its all-to-alls, and the others
/// max(0, x - K) of theirs. Its kernels take longer beside the others' all-to-alls (lost_beside).
void run_beside(PricedProgram& priced, std::span<const PricedProgram> others, const KernelSlowdown& slowdown);

}  // namespace hdpsim
