#pragma once

#include "sim/engine/background.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The fidelity of a simulation. All fidelities simulate the same program.
enum class Grain {
  fluid,        ///< A pass of a group is one coupled activity; only contended passes are simulated layer by layer.
  exact,        ///< Every ring step, layer and copy of every rank is an event.
  closed_form,  ///< Like fluid, but without contention: no link is shared.
};

/// Simulates one step of a program. Deterministic. The program's plan must have passed the plan checker; a deadlock of
/// the simulated program throws a CheckFailure that says which ranks wait in which micro-batch.
///
/// Number of events, where m is the sum of the group sizes, L the number of layers and N the size of the largest group:
/// O(micro-batches) in fluid, with contended links O(L x contended micro-batches); O(L N m) in exact.
///
/// A background shares the network with the step, and each of its jobs' steps adds its own events. The closed form
/// supports no background and throws a CheckFailure.
[[nodiscard]] Timeline simulate(const Program& program, Machine& machine, Grain grain,
                                const Background& background = {});

}  // namespace hdpsim
