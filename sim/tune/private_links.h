#pragma once

#include "sim/engine/machine.h"
#include "sim/program/program.h"

namespace hdpsim {

/// True if every ring and every message between stages of a step has all of its links to itself, so that the fluid
/// grain has nothing to share out: with nothing else on the network, a step is then simulated in it as in closed form,
/// to the picosecond. Not known, and so false, of models with experts. O(passes x ranks of their groups).
[[nodiscard]] bool has_private_links(const Program& program, const Machine& machine);

}  // namespace hdpsim
