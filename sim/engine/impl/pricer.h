#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cluster/placement.h"
#include "sim/cost/cost_model.h"
#include "sim/engine/machine.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// Sets the times that all passes of a class have in common (PassClass): those of all instructions but attention,
/// copies of activations and collectives in the pass's group, and the traffic. `cost` is asked in place of the
/// machine's.
void price_class(PricedProgram& priced, const Machine& machine, const CostModel& cost);

/// Sets the others of a program that has these, and what follows from all times of a block: waits for the busiest rank
/// and for the host, and kernels that overlap with data-parallel collectives or with exchanges over the ring's `hops`.
void price_pass(PricedProgram& priced, const Pipeline& pipeline, PassId id, const std::vector<Hop>& hops,
                const Machine& machine);

/// Kernels that the host issues for an instruction of the compute stream. A program with its launches of attention.
[[nodiscard]] std::int64_t kernels_of(const Instruction& instruction, const MicroBatchProgram& program,
                                      const CostModel& cost);
/// The wait of a device, which computes for `device`, until the host has issued so many kernels.
[[nodiscard]] inline Duration host_delay(std::int64_t kernels, Duration device, const Machine& machine) {
  return std::max(Duration{}, kernels * machine.issue - device);
}

}  // namespace hdpsim
