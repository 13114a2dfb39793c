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

/// Prices a pass that a schedule runs at the same time as `others`, layer by layer: one, or where its backward is split
/// the pass for the gradients of inputs and that for those of weights. Kernels and all-to-alls of both alternate
/// (Megatron-Core, TransformerLayerSchedulePlan.run; DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1, has the same
/// pairs), and each pair takes as long as the longer of its two:
///
///   all-to-all of     backward, results   forward, to      backward, back    forward, back
///   beside kernels of forward, attention  backward, MLP    forward, MLP      backward, attention
///
/// The pass keeps what is longer of its all-to-alls, and its kernels take longer under the partner's
/// (lost_to_overlap). Layers are taken as alike: their sums are compared.
void overlap_passes(PricedProgram& priced, std::span<const PricedProgram> others, const KernelSlowdown& slowdown);

}  // namespace hdpsim
