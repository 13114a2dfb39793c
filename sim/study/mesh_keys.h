#pragma once

#include "sim/document/key_table.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The shape of a list of nodes: `0-127`, `every 2`.
[[nodiscard]] KeyShape nodes_shape();

/// The keys of `mesh`. read_mesh() checks that their values are consistent.
[[nodiscard]] const KeyTable<PointSpec>& mesh_keys();

}  // namespace hdpsim
