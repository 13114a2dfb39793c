#pragma once

#include "sim/document/document.h"

namespace hdpsim {

/// A study with every value that may be left out put in: `grain: fluid`, `data: {overlong: split, seed: 1}`,
/// `mesh: {tp: 1, pp: 1, capacity: 8Ki, placement: contiguous, groups: one_communicator, connections: warm,
/// recompute: none, zero: 1}` and `memory: {loss: fused, fragmentation: 0.047, reserve: auto}`;
/// with stages also `mesh: {schedule: 1f1b, virtual_stages: 1}`, and where it speaks of experts `mesh: {ep: 1}` and
/// `moe: {across: inside, capacity_factor: none, routing: uniform}`.
[[nodiscard]] Value with_defaults(Value study);

}  // namespace hdpsim
