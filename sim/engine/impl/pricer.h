#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/placement.h"
#include "sim/cost/cost_model.h"
#include "sim/engine/machine.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Sets the times that all passes of a class have in common (PassClass): those of all instructions but attention and
/// collectives in the pass's group, and the traffic. `cost` is asked in place of the machine's.
void price_class(PricedProgram& priced, const Machine& machine, const CostModel& cost);

/// Sets the others of a program that has these, and what follows from all times of a block: waits for the busiest rank
/// and for the host, and kernels that overlap with data-parallel collectives or with exchanges over the ring's `hops`.
void price_pass(PricedProgram& priced, const Pipeline& pipeline, PassId id, const std::vector<Hop>& hops,
                const Machine& machine);

}  // namespace hdpsim
