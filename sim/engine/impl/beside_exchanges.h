#pragma once

#include <vector>

#include "sim/cost/kernel_slowdown.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// How many times longer a kernel takes beside messages; dense parts are taken for products altogether.
[[nodiscard]] double factor_of(Opcode opcode, const KernelSlowdown& slowdown);

/// Makes the kernels of a ring longer that have an exchange of their own ring under way beside them: while it lasts
/// they make 1 / slowdown of their progress. A kernel of time t beside an exchange of time x takes t + min(x, f t) (1 -
/// 1/f).
///
/// An approximation in that x is the time of the exchange over the ring's slowest hop with the links to itself, counted
/// from the start of the first kernel behind it in the program: where messages share links or wait for a rank, kernels
/// lose a little more. It is one price for all ranks, so that both grains run the same kernels.
void slow_beside_exchanges(PricedProgram& priced, const std::vector<Hop>& hops, const KernelSlowdown& slowdown);

}  // namespace hdpsim
