#pragma once

#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// One function a grain; see Grain. `contention` false lets every ring have its links alone.
[[nodiscard]] Timeline simulate_fluid(const Program& program, Machine& machine, bool contention);
[[nodiscard]] Timeline simulate_exact(const Program& program, Machine& machine);

}  // namespace hdpsim
