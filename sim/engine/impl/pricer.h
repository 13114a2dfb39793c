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

/// Sets the waits for the host from all other times. The host runs ahead of the device and issues one kernel after
/// another: an iteration takes as long as the slower of the two, or longer where the host waits for the device
/// (TensorParallelCollective::host_waits): behind such a point it has no lead. Its lead when a loop begins, and while
/// the device waits for messages, is neglected.
void wait_for_host(PricedProgram& priced, const Machine& machine);

/// What the host issues for an instruction. Collectives among tensor-parallel devices cost it nothing more: a layer
/// takes the host of Megatron-LM as long at tp 4 as at tp 1 (golden values of its functional tests). A program with its
/// launches of attention.
[[nodiscard]] HostCalls host_calls_of(const Instruction& instruction, const MicroBatchProgram& program,
                                      const CostModel& cost);
/// Whether the host waits for the device before it issues an instruction.
[[nodiscard]] inline bool host_waits_before(const Instruction& instruction, const MicroBatchProgram& program) {
  return instruction.opcode == Opcode::collective && program.collectives[instruction.work].host_waits;
}
/// The wait of a device, which computes for `device`, until the host has issued all that.
[[nodiscard]] inline Duration host_delay(const HostCalls& calls, Duration device, const Machine& machine) {
  return std::max(Duration{}, machine.host.of(calls) - device);
}

}  // namespace hdpsim
