#pragma once

#include "sim/engine/background.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// How fine the simulation is. All grains run the same program and agree where they should.
enum class Grain {
  fluid,        ///< A micro-batch of a group is one coupled activity; only contention breaks it into layers.
  exact,        ///< Every ring step, layer and copy of every rank is an event with its own flow.
  closed_form,  ///< As fluid, with nobody sharing a link.
};

/// Runs one step of a program. Deterministic. The program's plan must have passed the checker: a deadlock of the
/// simulated program is a CheckFailure that says which ranks wait for which micro-batch.
///
/// Events, for m = sum of group sizes, L layers and N the largest group: fluid O(micro-batches), with contended links
/// O(L x contended micro-batches); exact O(L N m).
///
/// With a background the step runs beside it on the same network; what a step of a background job costs comes on top,
/// as often as it runs. The closed form knows no neighbours: a background is then a CheckFailure.
[[nodiscard]] Timeline simulate(const Program& program, Machine& machine, Grain grain,
                                const Background& background = {});

}  // namespace hdpsim
