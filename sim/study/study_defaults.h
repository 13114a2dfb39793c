#pragma once

#include "sim/document/document.h"

namespace hdpsim {

/// A study with the defaults of what it leaves out put in: those of declared keys (study_keys.h) where
/// KeyNotes::written says so; `grain: fluid`, `data: {overlong: split, seed: 1}`, `memory: {loss: fused,
/// fragmentation: 0.047, reserve: auto}`, and where it speaks of experts `moe: {across: inside, capacity_factor: none,
/// routing: uniform}`.
[[nodiscard]] Value with_defaults(Value study);

}  // namespace hdpsim
