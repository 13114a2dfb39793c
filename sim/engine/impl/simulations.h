#pragma once

#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// One function a grain; see Grain. `contention` false lets every ring have its links alone.
[[nodiscard]] Timeline simulate_fluid(const Program& program, Machine& machine, bool contention);
/// Micro-batches whose rings share no link are run without the event queue; `queue_all` runs them with it, which gives the
/// same timeline.
[[nodiscard]] Timeline simulate_exact(const Program& program, Machine& machine, bool queue_all = false);

}  // namespace hdpsim
