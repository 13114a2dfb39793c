#pragma once

#include "sim/document/key_table.h"
#include "sim/study/point.h"

namespace hdpsim {

/// What a list of nodes looks like: `0-127`, `every 2`.
[[nodiscard]] KeyShape nodes_shape();

/// The keys of `mesh`. What they say together is checked by read_mesh().
[[nodiscard]] const KeyTable<PointSpec>& mesh_keys();

}  // namespace hdpsim
