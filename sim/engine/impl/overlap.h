#pragma once

#include <span>
#include <vector>

#include "sim/cost/kernel_slowdown.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// How many times longer a kernel takes while messages are under way. A dense part counts as matrix products as a
/// whole.
[[nodiscard]] double factor_of(Opcode opcode, const KernelSlowdown& slowdown);

/// Lengthens the kernels of a ring that overlap with an exchange of the same ring: during the exchange they run f times
/// slower, where f is their slowdown. A kernel of time t that overlaps with an exchange of time x takes
/// t + min(x, f t) (1 - 1/f).
///
/// This is an approximation: x is the time of the exchange over the ring's slowest hop without other traffic, counted
/// from the start of the first kernel after the exchange in the program. Where messages share links or wait for a rank,
/// kernels lose a little more. All ranks have the same price, so that the fluid and the exact fidelity run the same
/// kernels.
void slow_under_exchanges(PricedProgram& priced, const std::vector<Hop>& hops, const KernelSlowdown& slowdown);

/// Prices a pass that a schedule runs at the same time as `others`, layer by layer: its all-to-alls of experts overlap
/// with the kernels of the others, and their all-to-alls with its kernels (DeepSeek-AI 2024, arXiv 2412.19437,
/// section 3.2.1). With K and X the times of kernels and all-to-alls of the one and k and x of the others, both
/// together take max(K + k, X + x, K + X, k + x): the pass keeps max(0, X - k) of its all-to-alls, and the others
/// max(0, x - K) of theirs. Its kernels take longer under the others' all-to-alls (lost_to_overlap).
void overlap_passes(PricedProgram& priced, std::span<const PricedProgram> others, const KernelSlowdown& slowdown);

}  // namespace hdpsim
