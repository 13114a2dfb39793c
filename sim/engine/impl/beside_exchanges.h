#pragma once

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
void slow_beside_exchanges(PricedProgram& priced, const std::vector<Hop>& hops, const KernelSlowdown& slowdown);

}  // namespace hdpsim
